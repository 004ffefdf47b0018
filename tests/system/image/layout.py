"""Writes an OCI layout: busybox with gzip, and a small layer with zstd that removes a file of the first.

usage: layout.py DIR WORD [ARCH [MEGABYTES]]
With MEGABYTES, the first layer has a file of that many zeros.
"""
import gzip, hashlib, io, json, os, pathlib, subprocess, sys, tarfile


def layer(entries):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, content in entries:
            info = tarfile.TarInfo(name)
            info.mode = 0o755
            if isinstance(content, str):
                info.type, info.linkname = tarfile.SYMTYPE, content
                tar.addfile(info)
            elif content is None:
                info.type = tarfile.DIRTYPE
                tar.addfile(info)
            else:
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


class Layout:
    def __init__(self, path):
        self.path = pathlib.Path(path)
        (self.path / "blobs/sha256").mkdir(parents=True, exist_ok=True)

    def blob(self, data, kind):
        digest = hashlib.sha256(data).hexdigest()
        (self.path / "blobs/sha256" / digest).write_bytes(data)
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(data)}

    def finish(self, descriptor):
        (self.path / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')
        index = {"schemaVersion": 2, "manifests": [descriptor]}
        (self.path / "index.json").write_text(json.dumps(index))


def main(path, word, arch=None, megabytes=0):
    arch = arch or {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
    busybox = pathlib.Path("/bin/busybox").read_bytes()
    zeros = [("zeros", bytes(int(megabytes) << 20))] if megabytes else []
    first = layer([("bin", None), ("bin/busybox", busybox), ("etc", None), ("gone", b"gone\n"), ("srv", None)]
                  + [(f"bin/{name}", "busybox") for name in ("sh", "cat", "ls", "id", "env", "pwd", "stat")] + zeros)
    second = layer([("etc", None), ("etc/os-release", f"ID={word}\n".encode()), (".wh.gone", b"")])
    layout = Layout(path)
    layers = [layout.blob(gzip.compress(first, 1, mtime=0), "layer.v1.tar+gzip"),
              layout.blob(subprocess.run(["zstd", "-q"], input=second, stdout=subprocess.PIPE, check=True).stdout,
                          "layer.v1.tar+zstd")]
    config = {"architecture": arch, "os": "linux",
              "config": {"Env": ["PATH=/bin", "WORD=" + word], "WorkingDir": "/srv", "User": "1234:5678",
                         "Entrypoint": ["/bin/cat"], "Cmd": ["/etc/os-release"], "Labels": {"a": "b"},
                         "ExposedPorts": {"80/tcp": {}}, "StopSignal": "SIGINT"},
              "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(data).hexdigest() for data in (first, second)]}}
    manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                "config": layout.blob(json.dumps(config).encode(), "config.v1+json"), "layers": layers}
    layout.finish(layout.blob(json.dumps(manifest).encode(), "manifest.v1+json"))


if __name__ == "__main__":
    main(*sys.argv[1:])
