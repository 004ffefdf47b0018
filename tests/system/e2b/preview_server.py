"""A server that shows the request it got, and sets what cookies it can."""
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        body = f"{self.requestline}\n{self.headers}".encode()
        self.send_response(200)
        for name in ("holt-preview", "__Host-holt-preview", "HOLT-PREVIEW", "own"):
            self.send_header("Set-Cookie", f"{name}=planted; Domain=localhost; Path=/")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
