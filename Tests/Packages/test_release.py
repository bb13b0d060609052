"""What a release is made of: repositories, sums, source, bill of materials."""

import gzip
import json
import os
import re
import shutil
import subprocess
import tarfile
from datetime import datetime
from pathlib import Path

import pytest

from conftest import DIST, REPOSITORY

VERSION = subprocess.run([REPOSITORY / "pam/version", "--released"], capture_output=True, text=True,
                         check=True).stdout.strip()


def files(directory):
    return {str(path.relative_to(directory)): path for path in directory.rglob("*") if path.is_file()}


def succeed(*command, **options):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True,
                          **options).stdout


def test_the_sums_are_those_of_all_files(signed):
    succeed("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=signed)
    summed = {line.split("  ", 1)[1] for line in (signed / "SHA256SUMS").read_text().splitlines()}
    assert files(signed).keys() - summed == {"SHA256SUMS", "SHA256SUMS.asc"}


def test_signatures_are_those_of_the_key_and_of_what_they_stand_beside(signed, key, tmp_path):
    keyring = tmp_path / "keyring.gpg"
    succeed("gpg", "--batch", "--homedir", key.parent, "--no-default-keyring", "--keyring", keyring, "--import",
            signed / "sallyport.asc")
    for name in ("SHA256SUMS", "rpm/repodata/repomd.xml"):
        signature = signed / f"{name}.asc"
        succeed("gpgv", "--keyring", keyring, signature, signed / name)
        changed = tmp_path / "changed"
        changed.write_bytes((signed / name).read_bytes() + b"\n")
        assert subprocess.run(["gpgv", "--keyring", keyring, signature, changed],
                              capture_output=True, check=False).returncode != 0
    succeed("gpgv", "--keyring", keyring, signed / "apt/dists/stable/InRelease")


def test_a_directory_without_a_releases_packages_is_left_alone(tmp_path):
    (tmp_path / "SHA256SUMS").write_text("of something else\n")
    done = subprocess.run([REPOSITORY / "pam/repository", "."], cwd=tmp_path, capture_output=True,
                          text=True, check=False)
    assert done.returncode == 66 and "hint: " in done.stderr
    assert (tmp_path / "SHA256SUMS").read_text() == "of something else\n"


def test_the_rpms_are_signed_and_listed(signed, tmp_path):
    database = ("--dbpath", tmp_path)
    packages = sorted((signed / "rpm").glob("*.rpm"))
    assert {path.name.rsplit("-", 2)[0] for path in packages} == {
        "pam-sallyport", "pam-sallyport-selinux", "sallyport", "sallyport-verifier"}
    before = subprocess.run(["rpmkeys", *database, "--checksig", *packages], capture_output=True,
                            text=True, check=False)
    assert before.returncode != 0 and "SIGNATURES NOT OK" in before.stdout
    succeed("rpmkeys", *database, "--import", signed / "sallyport.asc")
    assert succeed("rpmkeys", *database, "--checksig", *packages).count("signatures OK") == len(packages)
    [primary] = (signed / "rpm/repodata").glob("*primary.xml.gz")
    listed = gzip.decompress(primary.read_bytes()).decode()
    sums = [succeed("sha256sum", path).split()[0] for path in packages]
    assert sorted(re.findall(r'<checksum type="sha256" pkgid="YES">(\w+)<', listed)) == sorted(sums)


def test_the_source_tarball_needs_nothing_from_elsewhere():
    with tarfile.open(DIST / f"sallyport-{VERSION}.tar.xz") as tarball:
        names = set(tarball.getnames())
        text = tarball.extractfile(f"sallyport-{VERSION}/Package.swift").read().decode()
    assert all(name.startswith(f"sallyport-{VERSION}") for name in names)
    places = re.findall(r'\.package\((\w+): "([^"]+)"', text)
    assert places and all(kind == "path" for kind, _ in places)
    assert all(f"sallyport-{VERSION}/{path}/Package.swift" in names for _, path in places)
    assert not [name for name in names if "/.git/" in name or "/.build/" in name]


def test_the_release_notes_are_the_changelogs_and_short(signed):
    notes = (signed / "NOTES.md").read_text()
    head, _, body = notes.partition("\n\n")
    assert head == f"# Sallyport {VERSION}"
    changelog = (REPOSITORY / "CHANGELOG.md").read_text()
    section = re.search(rf"^## {re.escape(VERSION)} \((\d{{4}}-\d\d-\d\d)\)\n(.*?)(?=^##|\Z)", changelog,
                        re.MULTILINE | re.DOTALL)
    datetime.strptime(section[1], "%Y-%m-%d")
    assert body.strip() == section[2].strip() and 0 < len(body.split()) <= 300


@pytest.fixture
def bill():
    [path] = DIST.glob(f"sallyport-{VERSION}-*.spdx.json")
    return json.loads(path.read_text())


def test_the_bill_of_materials_has_what_spdx_requires(bill):
    """SPDX 2.3, clauses 6 (document), 7 (packages), 8 (files) and 11 (relationships)."""
    assert bill["spdxVersion"] == "SPDX-2.3" and bill["dataLicense"] == "CC0-1.0"
    assert bill["SPDXID"] == "SPDXRef-DOCUMENT" and bill["name"]
    assert re.fullmatch(r"[a-z][a-z0-9+.-]*:[^#\s]+", bill["documentNamespace"])
    datetime.strptime(bill["creationInfo"]["created"], "%Y-%m-%dT%H:%M:%SZ")
    creators = bill["creationInfo"]["creators"]
    assert creators and all(re.match("(Tool|Organization|Person): .", one) for one in creators)
    for package in bill["packages"]:
        assert package["name"] and package["downloadLocation"] and package["versionInfo"]
        assert package["filesAnalyzed"] is False and "packageVerificationCode" not in package
        assert re.match("(Organization|Person): .", package["supplier"])
    for file in bill["files"]:
        assert file["fileName"].startswith("./")
        # SHA1 is the one that the standard demands.
        assert {sum["algorithm"] for sum in file["checksums"]} >= {"SHA1", "SHA256"}
    identities = [part["SPDXID"] for part in (bill, *bill["packages"], *bill["files"])]
    assert len(set(identities)) == len(identities)
    assert all(re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", one) for one in identities)
    for line in bill["relationships"]:
        assert {line["spdxElementId"], line["relatedSpdxElement"]} <= set(identities)
        assert line["relationshipType"] in ("DESCRIBES", "CONTAINS", "STATIC_LINK")
    assert [line["spdxElementId"] for line in bill["relationships"]
            if line["relationshipType"] == "DESCRIBES"] == ["SPDXRef-DOCUMENT"]


def test_the_bill_of_materials_tells_what_is_linked_in(bill):
    names = {package["SPDXID"]: package["name"] for package in bill["packages"]}
    files = {file["SPDXID"]: file for file in bill["files"]}
    linked = {}
    for line in bill["relationships"]:
        if line["relationshipType"] == "STATIC_LINK":
            file = files[line["spdxElementId"]]["fileName"]
            linked.setdefault(file[2:], set()).add(names[line["relatedSpdxElement"]])
    # By the names of their functions, in the files before they are stripped.
    marks = {"swift-foundation": "20FoundationEssentials", "swift-argument-parser": "14ArgumentParser",
             "libqrcodegen": " qrcodegen_", "swift-runtime": "swift_retain"}
    built = {"lib/pam_sallyport.so": "module/release/libpam_sallyport.so",
             "bin/sallyport": "command/release/sallyport",
             "sbin/sallyportd": "command/release/sallyportd",
             "sbin/sallyport-session": "command/release/sallyport-session",
             "sbin/sallyport-verifier": "command/release/sallyport-verifier"}
    for file, path in built.items():
        symbols = succeed("nm", "--defined-only", REPOSITORY / ".build" / path)
        found = {name for name, mark in marks.items() if mark in symbols}
        assert linked[file] == found, file
    for file in files.values():
        path = REPOSITORY / ".build/stage" / file["fileName"]
        sums = {sum["algorithm"]: sum["checksumValue"] for sum in file["checksums"]}
        assert sums["SHA256"] == succeed("sha256sum", path).split()[0]
    [parser] = [one for one in bill["packages"] if one["name"] == "swift-argument-parser"]
    checkout = REPOSITORY / ".build/command/checkouts/swift-argument-parser"
    assert parser["downloadLocation"].endswith("@" + succeed(
        "git", "-C", checkout, "rev-parse", "HEAD").strip())


def test_lintian_finds_no_errors_and_no_warnings_in_debians_source(signed):
    if shutil.which("lintian") is None:
        pytest.skip("lintian is not installed")
    [package] = (signed / "apt/pool").glob("*.dsc")
    # Debian 12's knows no policy that is newer than itself.
    done = subprocess.run(
        ["lintian", "--fail-on", "error,warning", "--suppress-tags", "newer-standards-version", package],
        capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif("SHORT" in os.environ, reason="compiles everything again: Tests/Packages/run")
def test_the_tarball_built_elsewhere_without_a_network_is_the_same_release(tmp_path):
    """The source tarball, unpacked in another directory, makes the same files again; the signatures
    are left out, as they carry the time."""
    other = tmp_path / "some other place"
    other.mkdir()
    with tarfile.open(DIST / f"sallyport-{VERSION}.tar.xz") as tarball:
        tarball.extractall(other)
    built = subprocess.run(
        ["unshare", "--map-root-user", "--net", other / f"sallyport-{VERSION}/pam/release"],
        capture_output=True, text=True, check=False,
        env=os.environ | {"VERSION": VERSION, "HOME": str(tmp_path), "KEY": ""})
    assert built.returncode == 0, built.stdout[-2000:] + built.stderr[-2000:]
    ours, theirs = files(DIST), files(other / f"sallyport-{VERSION}/.build/dist")
    assert ours.keys() == theirs.keys() and len(ours) > 20
    assert [name for name in ours if ours[name].read_bytes() != theirs[name].read_bytes()] == []
