"""What is in the packages."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import REPOSITORY


def field(package, name):
    done = subprocess.run(["dpkg-deb", "-f", package, name], capture_output=True, text=True,
                          check=True)
    return done.stdout.strip()


@pytest.fixture(scope="session")
def trees(packages, tmp_path_factory):
    """{name: the directory it unpacks to}"""
    directory = tmp_path_factory.mktemp("trees")
    for name, path in packages.items():
        subprocess.run(["dpkg-deb", "-x", path, directory / name], check=True)
    return {name: directory / name for name in packages}


@pytest.mark.parametrize("name, wanted", [
    ("libpam-sallyport", {"libpam-runtime", "sallyport", "libc6", "libpam0g", "libssl3", "libgcc-s1", "libstdc++6"}),
    ("sallyport", {"libc6", "libpam0g", "libssl3", "libgcc-s1", "libstdc++6"}),
    ("sallyport-verifier", {"passwd", "libpq5", "libc6", "libssl3", "libgcc-s1", "libstdc++6"}),
])
def test_the_packages_depend_on_what_they_link(packages, name, wanted):
    depends = field(packages[name], "Depends")
    assert {re.sub("t64$", "", word.split()[0]) for word in depends.split(",")} == wanted
    assert field(packages[name], "Recommends") == ""
    assert re.fullmatch(r"qr-code-generator \(= .+\)", field(packages[name], "Static-Built-Using"))


def test_the_module_wants_the_command_of_the_same_build(packages):
    version = field(packages["sallyport"], "Version")
    assert f"sallyport (= {version})" in field(packages["libpam-sallyport"], "Depends")


def test_every_installed_file_is_in_one_package(trees, tmp_path):
    (tmp_path / "all").mkdir(mode=0o700)
    modules = next(trees["libpam-sallyport"].rglob("pam_sallyport.so")).parent
    pamdir = f"/{modules.relative_to(trees['libpam-sallyport'])}"
    subprocess.run(
        [REPOSITORY / "pam/install"], check=True, capture_output=True,
        env=os.environ | {"DESTDIR": str(tmp_path / "all"), "PREFIX": "/usr", "PAMDIR": pamdir})

    def names(tree):
        return [str(path.relative_to(tree)).removesuffix(".gz") for path in tree.rglob("*")
                if path.is_file() and "share/doc" not in str(path)]
    installed = [name for name in names(tmp_path / "all") if not name.startswith("var/")]
    assert sorted(name for tree in trees.values() for name in names(tree)) == sorted(installed)


def test_the_documents_are_where_they_say(trees):
    doc = trees["libpam-sallyport"] / "usr/share/doc/libpam-sallyport"
    text = (doc / "recipes.md").read_text()
    [directory] = re.findall(r"^cd /(\S+/fail2ban) ", text, re.MULTILINE)
    assert {path.name for path in (trees["libpam-sallyport"] / directory).iterdir()} == {
        "filter.conf", "jail.conf"}
    doc = trees["sallyport-verifier"] / "usr/share/doc/sallyport-verifier"
    [directory] = re.findall(r"`/(\S+/examples/prometheus)`", (doc / "alerts.md").read_text())
    assert {path.name for path in (trees["sallyport-verifier"] / directory).iterdir()} == {
        "sallyport.rules.yml", "sallyport-dashboard.json"}


def test_lintian_finds_no_errors_and_no_warnings(packages):
    if shutil.which("lintian") is None:
        pytest.skip("lintian is not installed")
    # Debian 12's does not know the field Static-Built-Using yet.
    done = subprocess.run(["lintian", "--fail-on", "error,warning", "--suppress-tags", "unknown-field",
                           *packages.values()], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def shares(trees, monkeypatch):
    """Where the completions are; the command is the package's."""
    monkeypatch.setenv("PATH", f"{trees['sallyport']}/usr/bin:{os.environ['PATH']}")
    return trees["sallyport"] / "usr/share"


def test_bash_completes_verbs_options_and_values(shares):
    pexpect = pytest.importorskip("pexpect")
    if not Path("/usr/share/bash-completion/bash_completion").exists():
        pytest.skip("bash-completion is not installed")
    shell = pexpect.spawn(
        "bash --norc --noprofile -i", encoding="utf-8", timeout=20, dimensions=(50, 120),
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", "TERM": "dumb",
             "INPUTRC": "/dev/null",
             "BASH_COMPLETION_USER_DIR": str(shares / "bash-completion")})
    shell.sendline(". /usr/share/bash-completion/bash_completion; PS1='rea''dy> '")
    shell.expect("ready> ")
    # The completion is found by the command's name, and typed on as it completes.
    shell.send("sallyport en\t--no-c\t--hel\t\n")
    shell.expect("USAGE: sallyport enroll ")
    shell.expect("ready> ")
    shell.sendline("sallyport enroll --type \t\t")
    shell.expect("hotp +totp")
    shell.close(force=True)


def test_zsh_loads_the_completion(shares):
    if shutil.which("zsh") is None:
        pytest.skip("zsh is not installed")
    script = ("fpath=($1 $fpath); autoload -U compinit; compinit -u -D; "
              "print -r -- $_comps[sallyport]; autoload +X _sallyport && print loaded")
    done = subprocess.run(["zsh", "-fc", script, "-", shares / "zsh/vendor-completions"],
                          capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["_sallyport", "loaded"], done.stderr


def test_fish_completes_a_verb(shares, tmp_path):
    if shutil.which("fish") is None:
        pytest.skip("fish is not installed")
    done = subprocess.run(
        ["fish", "--no-config", "-c", 'source $argv[1]; complete -C "sallyport en"',
         shares / "fish/vendor_completions.d/sallyport.fish"],
        capture_output=True, text=True, check=False, env=os.environ | {"HOME": str(tmp_path)})
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == ["enroll"], done.stderr
