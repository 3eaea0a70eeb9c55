"""Fetch the domains' files from the UCI repository and write them as the CSV files the study reads.

The repository's files come in many forms (class first, tabs, semicolons, ARFF).
Each is converted to one form: comma-separated, a header, features first. What
was fetched is checked by a SHA-256 over its parsed values, not its characters:
copies of these files write the same number in more than one way. A file that
passes is kept in a cache folder, written whole or not at all.
"""

from __future__ import annotations

import hashlib
import http.client
import io
import os
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

from radocraft.errors import StudyError
from radocraft.files import writing

UCI = "https://archive.ics.uci.edu"
_TIMEOUT = 60
_ML = "/ml/machine-learning-databases"


@dataclass(frozen=True)
class DomainFile:
    """Where a domain's file is and how it is written.

    Parameters
    ----------
    path
        Under the address of the repository.
    columns
        Names of the columns, in the order of the CSV file to write.
    digest
        `values_digest` of the CSV file to write.
    separator
        Between two cells; None for any white space.
    skip
        Lines before the rows, or the line after which the rows start.
    class_first
        Whether the class stands before the features.
    drop
        How many cells at the start of a row are left out.
    """

    path: str
    columns: tuple[str, ...]
    digest: str
    separator: str | None = ","
    skip: int | str = 0
    class_first: bool = False
    drop: int = 0


def _numbered(name: str, count: int) -> tuple[str, ...]:
    return tuple(f"{name}{at:02d}" for at in range(1, count + 1))


_WINE = (
    "alcohol malic_acid ash alcalinity_of_ash magnesium total_phenols flavanoids nonflavanoid_phenols "
    "proanthocyanins color_intensity hue od280/od315_of_diluted_wines proline class"
)
_QUALITY = (
    "fixed_acidity volatile_acidity citric_acid residual_sugar chlorides free_sulfur_dioxide total_sulfur_dioxide "
    "density pH sulphates alcohol class"
)
_STEEL = (
    "X_Minimum X_Maximum Y_Minimum Y_Maximum Pixels_Areas X_Perimeter Y_Perimeter Sum_of_Luminosity "
    "Minimum_of_Luminosity Maximum_of_Luminosity Length_of_Conveyer TypeOfSteel_A300 TypeOfSteel_A400 "
    "Steel_Plate_Thickness Edges_Index Empty_Index Square_Index Outside_X_Index Edges_X_Index Edges_Y_Index "
    "Outside_Global_Index LogOfAreas Log_X_Index Log_Y_Index Orientation_Index Luminosity_Index SigmoidOfAreas "
    "Pastry Z_Scratch K_Scatch Stains Dirtiness Bumps Other_Faults"
)
_PAGE = "height length area eccen p_black p_and mean_tr blackpix blackand wb_trans class"
_PHISHING = (
    "having_IP_Address URL_Length Shortining_Service having_At_Symbol double_slash_redirecting Prefix_Suffix "
    "having_Sub_Domain SSLfinal_State Domain_registeration_length Favicon port HTTPS_token Request_URL URL_of_Anchor "
    "Links_in_tags SFH Submitting_to_email Abnormal_URL Redirect on_mouseover RightClick popUpWidnow Iframe "
    "age_of_domain DNSRecord web_traffic Page_Rank Google_Index Links_pointing_to_page Statistical_report class"
)
_MICE = (
    "DYRK1A ITSN1 BDNF NR1 NR2A pAKT pBRAF pCAMKII pCREB pELK pERK pJNK PKCA pMEK pNR1 pNR2A pNR2B pPKCAB pRSK AKT "
    "BRAF CAMKII CREB ELK ERK GSK3B JNK MEK TRKA RSK APP Bcatenin SOD1 MTOR P38 pMTOR DSCR1 AMPKA NR2B pNUMB RAPTOR "
    "TIAM1 pP70S6 NUMB P70S6 pGSK3B pPKCG CDK5 S6 ADARB1 AcetylH3K9 RRP1 BAX ARC ERBB4 nNOS Tau GFAP GluR3 GluR4 IL1B "
    "P3525 pCASP9 PSD95 SNCA Ubiquitin pGSK3B_Tyr216 SHH BAD BCL2 pS6 pCFOS SYP H3AcK18 EGR1 H3MeK4 CaNA"
)
_CLAVES = ("class_neutral", "class_reverse", "class_forward", "class_incoherent")
_DIGESTS = {
    "wine": "a33d4613c7836759d8ff85cb8ef6ad84de699a105dca521853a77c3a7dfe8d92",
    "sonar": "f6aebecefe3f9be910854d12ff30fe2f0c5d57d33f1cf14e8c86965233ee75a7",
    "ionosphere": "2f66250e15214902db3c4d713bf70828ea46cfbf0810de5d4db412cb904e0bfa",
    "mice": "7b7d3aea207145f5744d8f48e62b06ad10f475d109199087eabfbf7a7c3676d1",
    "winered": "e690cb249ad68f6f67ed241cdcce7d2eecec881cb2fc035150f53b7aa2105b57",
    "steelplates": "ebf2de013d596fc3b8e6c655fd666419e400de785af7c414f7270316fcb3e0d5",
    "statlog": "164f05f1e62be88f7231ca0c53b31a26c2d04e80d6ff74b4d8245714beba227a",
    "winewhite": "77bb66c435126909ecb3980adfe1318853ec2442d953d0c164a8de22555b4984",
    "page": "6bdeeead70ecac99fd7f8aa1dfbb95e317e8a0150c0e98d32a96a013432aa6b4",
    "firmteacher": "b1c156ffb3e2b34a70ce8e2fe09c81de30db03cb9c81c1b68e6d7435db89d307",
    "phishing": "0194e13ab25c73d12afd7a9d887fdef539bc2e959bd4b3fbf551fef3acf1b2da",
}
SOURCES = {
    "wine": DomainFile(
        f"{_ML}/wine/wine.data",
        tuple(_WINE.split()),
        _DIGESTS["wine"],
        class_first=True,
    ),
    "sonar": DomainFile(
        f"{_ML}/undocumented/connectionist-bench/sonar/sonar.all-data",
        (*_numbered("band", 60), "class"),
        _DIGESTS["sonar"],
    ),
    "ionosphere": DomainFile(
        f"{_ML}/ionosphere/ionosphere.data",
        (*_numbered("a", 34), "class"),
        _DIGESTS["ionosphere"],
    ),
    "mice": DomainFile(
        "/static/public/342/data.csv",
        (*(f"{protein}_N" for protein in _MICE.split()), "Genotype", "Treatment", "Behavior", "class"),
        _DIGESTS["mice"],
        skip=1,
        drop=1,
    ),
    "winered": DomainFile(
        f"{_ML}/wine-quality/winequality-red.csv",
        tuple(_QUALITY.split()),
        _DIGESTS["winered"],
        separator=";",
        skip=1,
    ),
    "steelplates": DomainFile(
        f"{_ML}/00198/Faults.NNA",
        tuple(_STEEL.split()),
        _DIGESTS["steelplates"],
        separator=None,
    ),
    "statlog": DomainFile(
        f"{_ML}/statlog/satimage/sat.trn",
        (*(f"px{pixel}_band{band}" for pixel in range(1, 10) for band in range(1, 5)), "class"),
        _DIGESTS["statlog"],
        separator=None,
    ),
    "winewhite": DomainFile(
        f"{_ML}/wine-quality/winequality-white.csv",
        tuple(_QUALITY.split()),
        _DIGESTS["winewhite"],
        separator=";",
        skip=1,
    ),
    "page": DomainFile(
        "/static/public/78/data.csv",
        tuple(_PAGE.split()),
        _DIGESTS["page"],
        skip=1,
    ),
    "firmteacher": DomainFile(
        f"{_ML}/00324/ClaveVectors_Firm-Teacher_Model.txt",
        (*_numbered("onset", 16), *_CLAVES),
        _DIGESTS["firmteacher"],
        separator=None,
    ),
    "phishing": DomainFile(
        f"{_ML}/00327/Training%20Dataset.arff",
        tuple(_PHISHING.split()),
        _DIGESTS["phishing"],
        skip="@data",
    ),
}


def cache_folder() -> Path:
    """Where fetched files are kept: under the user's cache folder."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "radocraft" / "uci"


def fetch(name: str, folder: Path | None = None, *, base: str = UCI, source: DomainFile | None = None) -> Path:
    """The CSV file of a domain, fetched if it is not in the cache yet.

    Raises
    ------
    StudyError
        If it cannot be fetched, or is not the file it should be.
    """
    target = (folder or cache_folder()) / f"{name}.csv"
    if target.exists():
        return target
    origin = source or SOURCES[name]
    content = to_csv(_get(base + origin.path), origin)
    if _digest_of(content, origin) != origin.digest:
        raise StudyError(
            f"What {base}{origin.path} gives is not the table '{name}' of the paper: its values have another checksum. "
            "Put a copy of the right file in a folder and set RADOCRAFT_DATA to it."
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    with writing(target) as file:
        file.write(content)
    return target


def _get(url: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT) as response:
            body: bytes = response.read()
    except urllib.error.HTTPError as error:
        raise StudyError(f"{url} answers {error.code} ({error.reason}). {_REMEDY}") from error
    except http.client.IncompleteRead as error:
        raise StudyError(f"The transfer of {url} broke off before its end; nothing was kept. Try again.") from error
    except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
        reason = getattr(error, "reason", error)
        raise StudyError(f"Cannot reach {url}: {reason}. {_REMEDY}") from error
    return body


_REMEDY = "Check the network, or put the CSV files in a folder and set RADOCRAFT_DATA to it."


def to_csv(body: bytes, source: DomainFile) -> bytes:
    """The repository's file as CSV with our header."""
    out = io.StringIO()
    out.write(",".join(source.columns) + "\n")
    for cells in _rows(body.decode("utf-8", errors="replace").splitlines(), source):
        out.write(",".join(cells) + "\n")
    return out.getvalue().encode()


def _rows(lines: Iterable[str], source: DomainFile) -> Iterator[list[str]]:
    rest = iter(lines)
    if isinstance(source.skip, str):
        for line in rest:
            if line.strip().lower() == source.skip:
                break
    else:
        rest = islice(rest, source.skip, None)
    for line in rest:
        if not line.strip():
            continue
        cells = [cell.strip() for cell in line.split(source.separator)][source.drop :][: len(source.columns)]
        yield [*cells[1:], cells[0]] if source.class_first else cells


def _digest_of(content: bytes, source: DomainFile) -> str:
    try:
        table = csv.read_csv(pa.BufferReader(content))
    except pa.ArrowException:
        return "unreadable"
    return values_digest(table) if len(table.column_names) == len(source.columns) else "other columns"


def values_digest(table: pa.Table) -> str:
    """SHA-256 over the values of a table, column by column: numbers as doubles, all else as text."""
    digest = hashlib.sha256()
    for column in table.columns:
        if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
            numbers = np.asarray(column.cast(pa.float64()).to_numpy(), dtype="<f8")
            digest.update(np.where(np.isnan(numbers), np.nan, numbers + 0.0).astype("<f8").tobytes())
        else:
            digest.update("\0".join(map(str, column.to_pylist())).encode())
        digest.update(b"\n")
    return digest.hexdigest()
