"""What proto/holt/v1 says, for tests that have to know every method: read from the files themselves."""
import pathlib, re

HERE = pathlib.Path(__file__).resolve().parent
NUMBERS = {"uint32", "uint64", "int32", "int64", "sint32", "sint64", "float", "double"}


class Method:
    def __init__(self, service, name, request, takes_stream, gives_stream, rules=""):
        self.path, self.name = f"/holt.v1.{service}/{name}", f"{service}/{name}"
        self.request, self.is_stream, self.is_upload = request, takes_stream or gives_stream, takes_stream
        self.rules = {rule for rule in ("read_only", "raw", "large", "local", "admin") if f"{rule}: true" in rules}


def json_name(name):
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), name)


def _bodies(text, keyword):
    """(name, body) of each block, nested ones apart."""
    for found in re.finditer(rf"\b{keyword} (\w+) \{{", text):
        depth, at = 1, found.end()
        while depth:
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
        yield found[1], text[found.end():at - 1]


def load():
    """(methods, messages, enums); a message is {field: type}, where map and repeated stand in front of a type."""
    methods, messages, enums = [], {}, set()
    for path in sorted((HERE / "../../proto/holt/v1").glob("*.proto")):
        text = re.sub(r"//[^\n]*", "", path.read_text())
        enums.update(name for name, _ in _bodies(text, "enum"))
        for name, body in _bodies(text, "message"):
            fields = re.findall(r"(repeated |map<string, *)?([\w.]+)>? (\w+) = \d+", body)
            messages[name] = {json_name(field): kind[:3] + " " * bool(kind) + of for kind, of, field in fields}
        for service, body in _bodies(text, "service"):
            for found in re.finditer(r"rpc (\w+)\((stream )?([\w.]+)\) returns \((stream )?[\w.]+\)"
                                     r"(?:;|\s*\{\s*option \(method\) = \{([^}]*)\})", body):
                methods.append(Method(service, found[1], found[3], bool(found[2]), bool(found[4]), found[5] or ""))
            assert body.count("rpc ") == sum(each.name.startswith(service + "/") for each in methods), service
    return methods, messages, enums
