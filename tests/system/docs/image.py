"""Writes an OCI layout of an image with one layer, which is a tar archive with zstd.

usage: image.py DIR ARCHIVE
"""
import hashlib, json, os, pathlib, subprocess, sys

from layout import Layout

layout, archive = Layout(sys.argv[1]), pathlib.Path(sys.argv[2]).read_bytes()
plain = subprocess.run(["zstd", "-dq"], input=archive, stdout=subprocess.PIPE, check=True).stdout
config = {"architecture": {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine], "os": "linux",
          "config": {"Env": ["PATH=/usr/bin:/bin"], "Cmd": ["bash"]},
          "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(plain).hexdigest()]}}
manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": layout.blob(json.dumps(config).encode(), "config.v1+json"),
            "layers": [layout.blob(archive, "layer.v1.tar+zstd")]}
layout.finish(layout.blob(json.dumps(manifest).encode(), "manifest.v1+json"))
