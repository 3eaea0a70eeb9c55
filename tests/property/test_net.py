"""What comes over the network, whatever it is: a message or a refusal, and files to the bit."""

import json
import tempfile
from datetime import timedelta
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from radocraft.errors import NetworkError, RadocraftError
from radocraft.net import _messages as messages
from radocraft.net._chunks import Incoming, cut
from radocraft.net._identity import Claim
from radocraft.net._messages import Message, Request

KINDS = [kind for kind in vars(messages).values() if isinstance(kind, type) and issubclass(kind, Message)]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)
SOUND = Request.now("bank", "risk", "0" * 64, timedelta(hours=1), id="a" * 32)


@given(kind=st.sampled_from(KINDS), text=st.binary(max_size=300))
def test_bytes_are_a_message_or_refused(kind: type[Message], text: bytes) -> None:
    try:
        read = kind.decode(text)
    except NetworkError:
        return
    assert kind.decode(read.encode()) == read


@given(name=st.sampled_from([*Request.model_fields]), value=JSON)
def test_a_request_with_another_value_is_a_request_or_refused(name: str, value: object) -> None:
    body = {**json.loads(SOUND.encode()), name: value}
    try:
        read = Request.decode(json.dumps(body).encode())
    except NetworkError:
        return
    assert Request.decode(read.encode()) == read
    assert len(read.job) == 64


@given(kind=st.sampled_from(KINDS))
def test_messages_that_are_too_long_are_not_even_parsed(kind: type[Message]) -> None:
    with pytest.raises(NetworkError, match="longest allowed"):
        kind.decode(b" " * (messages.LONGEST + 1))


@given(text=st.text(max_size=200))
def test_any_name_in_a_certificate_is_a_claim(text: str) -> None:
    claim = Claim.read(text)
    assert (claim.token is None) == (claim.serial is None)
    assert claim.token is not None or claim.name == text


@given(content=st.binary(min_size=1, max_size=2000), cuts=st.lists(st.integers(0, 2000), max_size=4))
def test_a_file_comes_to_the_bit_wherever_it_was_cut(content: bytes, cuts: list[int]) -> None:
    with tempfile.TemporaryDirectory() as name:
        source, incoming = Path(name) / "a", Incoming(Path(name) / "b", len(content), sha256(content).hexdigest())
        for end in sorted(cuts):
            if incoming.offset < end < len(content):  # what came before the wire was cut
                source.write_bytes(content[:end])
                list(incoming.take(cut(source, incoming.offset), incoming.offset))
                with pytest.raises(NetworkError, match="ended after"):
                    incoming.verify()
        source.write_bytes(content)
        list(incoming.take(cut(source, incoming.offset), incoming.offset))
        incoming.verify()
        incoming.finish()
        assert (Path(name) / "b").read_bytes() == content


@given(content=st.binary(min_size=1, max_size=500), at=st.integers(0, 499))
def test_a_changed_byte_is_never_taken(content: bytes, at: int) -> None:
    changed = bytearray(content)
    changed[at % len(content)] ^= 1
    with tempfile.TemporaryDirectory() as name:
        source, incoming = Path(name) / "a", Incoming(Path(name) / "b", len(content), sha256(content).hexdigest())
        source.write_bytes(changed)
        list(incoming.take(cut(source), 0))
        with pytest.raises(RadocraftError, match="does not match"):
            incoming.verify()
        assert [path.name for path in Path(name).iterdir()] == ["a"]
