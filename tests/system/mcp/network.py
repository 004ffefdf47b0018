"""The claims of network_test: `network.py CLAIM`. There are sandboxes named lonely, listed and public."""
import subprocess, sys

from api import Connection
from mcp import VERSIONS, equal, message, sandboxes, tcp, token_create
from stateless import ask, bridge, lines, replies_of, request, result_of, text_of, tool
import mcp

TEXTS = {"none": "There is no network", "open": "reaches public addresses", "allow": "reaches only some hosts"}


def told(path, connection=None, **headers):
    """What both kinds of revisions say; they must agree."""
    new = result_of(ask(connection or Connection(), request("server/discover"), path=path, **headers))["instructions"]
    old = mcp.ask(connection or Connection(), message("initialize", 0, protocolVersion=VERSIONS[0]), path=path, **headers)[2]
    equal(new, old["result"]["instructions"])
    mode, = [mode for mode, text in TEXTS.items() if text in new]
    return mode


def the_instructions_say_what_the_network_is():
    before = sandboxes()
    equal(["none", "allow", "open"], [told(f"/mcp?sandbox={name}") for name in ["lonely", "listed", "public"]])
    # Without a sandbox yet, it is what a new one would have.
    ann = {"Authorization": "Bearer " + token_create(owner="ann")}
    equal(["open", "open", "none"], [told("/mcp"), told("/mcp?sandbox=later"), told("/mcp", tcp(), **ann)])
    equal("none", told("/mcp?sandbox=public", tcp(), **ann))  # which does not exist for this owner
    equal(before, sandboxes())
    subprocess.run(["holt", "net", "set", "-q", "public", "--net", "none"], check=True)
    equal("none", told("/mcp?sandbox=public"))
    reply, = replies_of(bridge("--sandbox", "listed"), request("server/discover"))
    assert TEXTS["allow"] in reply["result"]["instructions"]


def network_status_shows_each_layer():
    def said(name):
        return text_of(result_of(ask(Connection(), tool("network_status", {}), path=f"/mcp?sandbox={name}")))

    equal(["A connection needs the consent of each of these:", "holt.conf: public and private addresses", "  deny blocked.test",
           "sandbox: only what is allowed here", "  allow example.com", "  deny bad.example.com", "  of both, deny wins"],
          said("listed").splitlines()[1:])
    assert "has no network" in said("lonely") and "blocked.test" not in said("lonely")


if __name__ == "__main__":
    globals()[sys.argv[1]]()
