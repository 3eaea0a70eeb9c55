"""The doctor names what is wrong: certificate, clock, name, port, right to call, contract."""

import shutil
from datetime import UTC, datetime, timedelta

import pytest
from tests.integration.net.live import another, live
from tests.integration.net.world import World
from tests.integration.test_cli import run  # noqa: F401

from radocraft.net import _authority as authority_module
from radocraft.net import _peer as peer_module
from radocraft.net._authority import init_authority, issue, rotate
from radocraft.net._doctor import examine


def found(
    world: World, to: str | None = None, who: str = "collector", contract: str = "contract.toml"
) -> dict[str, str]:
    place = ("bank", to) if to else None
    return {
        finding.check: f"{finding.verdict}: {finding.message}"
        for finding in examine(world.folder / who, place, world.folder / contract)
    }


def test_all_is_well(world: World, run) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    with live(world) as bank:
        told = run("doctor", "-i", world.folder / "collector", "--to", f"bank={bank.address}", "--json")
        assert (told.code, {one["verdict"] for one in told.json()}) == (0, {"good"})
        findings = found(world, bank.address)
        assert findings["the other end's contract"].startswith("good")
        assert findings["clocks"].startswith("good")


def test_wrong_clock_and_unknown_contract(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    class Late(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
            return datetime.now(UTC) + timedelta(hours=2)

    text = (world.folder / "contract.toml").read_text().replace("[30, 45, 60]", "[30, 45]")
    (world.folder / "other.toml").write_text(text)
    monkeypatch.setattr(peer_module, "datetime", Late)
    with live(world) as bank:
        findings = found(world, bank.address, contract="other.toml")
    assert "its clock is 120 minutes ahead of ours" in findings["clocks"]
    assert "it does not know" in findings["the other end's contract"]


def test_a_clock_that_is_behind(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Certificates of tomorrow, our own and the other end's."""

    class Tomorrow(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
            return datetime.now(UTC) + timedelta(days=1)

    shutil.rmtree(world.folder / "bank" / "identity")
    monkeypatch.setattr(authority_module, "datetime", Tomorrow)
    early = another(world, "early").name
    issue(world.folder / "authority", "bank", world.folder / "bank" / "identity", trust=("collector",))
    assert "Is the clock right?" in found(world, who=early)["identity"]
    with live(world) as bank:
        assert "Is this machine's clock behind?" in found(world, bank.address)["certificate"]


def test_wrong_name_port_and_host(world: World, run) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    with live(world) as bank:
        told = run("doctor", "-i", world.folder / "collector", "--to", f"insurer={bank.address}")
        assert (told.code, "the name before '='" in " ".join(told.out.split())) == (1, True)
    assert "nobody listens" in found(world, bank.address)["port"]
    assert "the name has no address" in found(world, "no-such-host.invalid:8815")["address"]
    assert "HOST:PORT" in found(world, "bank")["address"]


def test_wrong_certificates(world: World) -> None:
    folder = world.folder
    init_authority(folder / "elsewhere")
    stranger = another(world, "collector", authority="elsewhere").name
    with live(world) as bank:
        assert "same authority.pem" in found(world, bank.address, who=stranger)["certificate"]
        nobody = another(world, "nobody").name
        assert "members.toml must name 'nobody'" in found(world, bank.address, who=nobody)["our right to call"]
    expired = another(world, "collector", days=-1).name
    assert "expired on" in found(world, who=expired)["identity"]
    assert "valid for 20 more days" in found(world, who=another(world, "shop", days=20).name)["identity"]
    rotate(folder / "authority", "collector", folder / "new")
    shutil.copy(folder / "authority" / "revoked.pem", folder / "collector" / "revoked.pem")
    (folder / "collector" / "token").chmod(0o644)
    findings = found(world)
    assert "our own certificate was revoked" in findings["revocation"]
    assert "chmod 600" in findings["secrets"]
    (folder / "collector" / "members.toml").write_text("[bank\n")
    assert "not valid TOML" in found(world)["revocation and members"]
