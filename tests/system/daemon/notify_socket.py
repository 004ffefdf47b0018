"""Prints what comes to a socket as systemd's, one datagram a line. usage: notify_socket.py PATH"""
import socket, sys

listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
listener.bind(sys.argv[1])
while True:
    print(listener.recv(4096).decode().replace("\n", " "), flush=True)
