"""Bundles for bundle_test: describes trees, and changes bundles as somebody hostile would.

    bundle.py tree ROOT                    prints every file of a sandbox with all that counts
    bundle.py change KIND FROM TO          writes a changed bundle
"""
import hashlib
import io
import json
import os
import sys
import tarfile


# --- reading and writing ------------------------------------------------------------------------

class Bundle:
    """The blobs of a bundle, of which any can be replaced; the digests above it follow."""

    def __init__(self, path):
        with tarfile.open(path) as tar:
            files = {member.name: tar.extractfile(member).read() for member in tar if member.isfile()}
        self.files = files
        manifest = self.blob(json.loads(files["index.json"])["manifests"][0])
        self.manifest = json.loads(manifest)
        self.config = json.loads(self.blob(self.manifest["config"]))
        self.layers = [self.blob(layer) for layer in self.manifest["layers"]]

    def blob(self, descriptor):
        return self.files["blobs/sha256/" + descriptor["digest"][7:]]

    def write(self, path, spoil=None, extra=()):
        files = {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}'}

        def put(data):
            digest = hashlib.sha256(data).hexdigest()
            files["blobs/sha256/" + digest] = spoil(data) if spoil else data
            return {"digest": "sha256:" + digest, "size": len(data)}

        layers = [dict(put(layer), mediaType="application/vnd.oci.image.layer.v1.tar") for layer in self.layers]
        config = put(json.dumps(self.config).encode())
        manifest = put(json.dumps(dict(self.manifest, layers=layers, config=config)).encode())
        files["index.json"] = json.dumps({"schemaVersion": 2, "manifests": [manifest]}).encode()
        with tarfile.open(path, "w") as tar:
            for name, data in files.items():
                info = tarfile.TarInfo(name)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
            for info in extra:
                tar.addfile(info)


def entry(name, kind=tarfile.REGTYPE, link="", pax=None, **more):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    info.pax_headers = pax or {}
    for key, value in more.items():
        setattr(info, key, value)
    return info


def layer_of(*entries):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for info in entries:
            tar.addfile(info)
    return out.getvalue()


# --- changes ------------------------------------------------------------------------------------

def holt(**fields):
    def change(bundle):
        bundle.config["holt"].update(fields)
    return change


def last_layer(*entries):
    def change(bundle):
        bundle.layers[-1] = layer_of(*entries)
    return change


def snapshot(**fields):
    def change(bundle):
        bundle.config["holt"]["snapshots"][-1].update(fields)
    return change


def plain(bundle):
    del bundle.config["holt"]


KINDS = {
    "no-document": plain,
    "version": holt(version=2),
    "too-few-layers": lambda bundle: bundle.layers.pop(),
    "memory": holt(limits={"memoryBytes": 1 << 60}),
    "memory-text": holt(limits={"memoryBytes": []}),
    "label": holt(labels={"a" * 4096: "b"}),
    "network-any": holt(network={"mode": "any"}),
    "network-rule": holt(network={"mode": "allow", "allow": ["no rule at all"]}),
    "snapshot-twice": snapshot(name="turn-0001", parent=""),
    "snapshot-own": snapshot(name="holt-export-1"),
    "snapshot-path": snapshot(name="../../x"),
    "snapshot-parent": snapshot(parent="none"),
    "snapshot-turn": snapshot(turn=4294967295),
    "base": holt(base="none"),
    "shell": holt(shells=[{"name": "../x", "state": "# sh\n"}]),
    "action": holt(idleAction="explode"),
    "outside": last_layer(entry("../outside")),
    "device": last_layer(entry("disk", tarfile.BLKTYPE, devmajor=254)),
    "owner": last_layer(entry("file", uid=70000)),
    "below-file": last_layer(entry("kept"), entry("kept/x")),
    "hard-link": last_layer(entry("link", tarfile.LNKTYPE, "../../etc/passwd")),
    "whiteout": last_layer(entry("a/.wh...")),
    # These are imported, without what is hostile in them.
    "overlay": last_layer(entry("opaque", tarfile.DIRTYPE, mode=0o755, pax={
        "SCHILY.xattr.trusted.overlay.opaque": "y", "SCHILY.xattr.user.overlay.opaque": "y",
        "SCHILY.xattr.trusted.overlay.redirect": "/etc", "SCHILY.xattr.user.kept": "yes"})),
    "link-out": last_layer(entry("out", tarfile.SYMTYPE, "/etc/../../../../../tmp"), entry("out/holt-was-here")),
}


def change(kind, source, target):
    bundle = Bundle(source)
    if kind == "damaged":
        bundle.write(target, lambda data: data[:-1] + b"\1" if len(data) > 4096 else data)
    elif kind == "other-files":
        bundle.write(target, extra=[entry("etc/passwd")])
    else:
        KINDS[kind](bundle)
        bundle.write(target)


# --- trees --------------------------------------------------------------------------------------

HOLTS = (b"dev", b"proc", b"sys", b"etc")  # Holt mounts there


def describe(path, first_uid):
    """One line with all that must survive, owners as the sandbox sees them, times to the nanosecond."""
    st = os.lstat(path)
    words = [oct(st.st_mode), st.st_uid - first_uid, st.st_gid - first_uid, st.st_mtime_ns]
    if os.path.islink(path):
        words.append(os.readlink(path))
    elif os.path.isfile(path):
        with open(path, "rb") as file:
            words += [st.st_nlink, st.st_size, hashlib.file_digest(file, "sha256").hexdigest()]
        words.append({name: os.getxattr(path, name) for name in sorted(os.listxattr(path)) if name.startswith("user.")})
    return " ".join(map(str, words))


def tree(top):
    top = os.fsencode(top)
    first_uid = os.lstat(top).st_uid
    for at, directories, files in os.walk(top):
        directories[:] = sorted(name for name in directories if at != top or name not in HOLTS)
        for name in sorted(files) + directories:
            path = os.path.join(at, name)
            print(path[len(top):], describe(path, first_uid))


def main():
    if sys.argv[1] == "tree":
        tree(sys.argv[2])
    else:
        change(*sys.argv[2:])


main()
