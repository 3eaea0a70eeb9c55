"""A peer's signature of its part: over the part's hash, with the key of its network identity.

Without one, whoever can write a file can make a part in a peer's name. Where the
contract lists a peer's `public_key`, its parts count only with its signature.
"""

from __future__ import annotations

import base64

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePrivateKey, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from radocraft.errors import ContractError, IdentityError, Tampered

_PURPOSE = b"radocraft part\0"
_ECDSA = ECDSA(hashes.SHA256())


def sign(digest: str, private: bytes) -> str:
    """Sign a part's hash with a private key in PEM (Ed25519, or the P-256 of `radocraft identity`).

    Examples
    --------
    >>> from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
    >>> key = Ed25519PrivateKey.generate()
    >>> private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    >>> check_signature("0" * 64, sign("0" * 64, private), public_key(private), "bank")
    """
    key, message = _private_key(private), _PURPOSE + digest.encode()
    made = key.sign(message) if isinstance(key, Ed25519PrivateKey) else key.sign(message, _ECDSA)
    return base64.b64encode(made).decode()


def public_key(private: bytes) -> str:
    """The public half of a private key, as the contract lists it."""
    der = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    return base64.b64encode(_private_key(private).public_key().public_bytes(*der)).decode()


def check_signature(digest: str, signature: str | None, public: str, peer: str) -> None:
    """Refuse a part of ``peer`` that this public key did not sign."""
    if signature is None:
        raise Tampered(
            f"The part of '{peer}' is not signed, and the contract lists the key that must sign it. "
            "Ask the peer for a signed one (`--sign`)."
        )
    try:
        key, given = serialization.load_der_public_key(base64.b64decode(public)), base64.b64decode(signature)
        if isinstance(key, Ed25519PublicKey):
            key.verify(given, _PURPOSE + digest.encode())
        elif isinstance(key, EllipticCurvePublicKey):
            key.verify(given, _PURPOSE + digest.encode(), _ECDSA)
        else:
            raise UnsupportedAlgorithm("neither Ed25519 nor an elliptic curve")
    except InvalidSignature as error:
        raise Tampered(
            f"The part of '{peer}' is not signed by the key that the contract lists: it was made or changed by "
            "somebody else, or the peer has a new key. Ask the peer."
        ) from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ContractError(
            f"The public_key of '{peer}' in the contract is not an Ed25519 or P-256 key. Ask the peer for its key."
        ) from error


def _private_key(private: bytes) -> Ed25519PrivateKey | EllipticCurvePrivateKey:
    try:
        key = serialization.load_pem_private_key(private, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise IdentityError(
            f"The private key to sign with cannot be read: {error}. Issue the identity anew."
        ) from error
    if not isinstance(key, Ed25519PrivateKey | EllipticCurvePrivateKey):
        raise IdentityError("Parts are signed with an Ed25519 or P-256 key. Issue one: radocraft identity issue.")
    return key
