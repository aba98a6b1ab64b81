"""Runs a command in a terminal: python3 in-terminal.py ROWS COLUMNS COMMAND...

What the terminal shows goes to stdout. Lines of JSON on stdin: {"write": TEXT}, as typed, {"resize": [ROWS, COLUMNS]}, or
{"signal": NUMBER} to the command. Ends as the command does, with 128 and the number of the signal that ended it.
"""
import fcntl
import json
import os
import pty
import select
import struct
import sys
import termios


def resize(terminal, rows, columns):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def obey(line, terminal, child):
    order = json.loads(line)
    if "write" in order:
        os.write(terminal, order["write"].encode())
    if "resize" in order:
        resize(terminal, *order["resize"])
    if "signal" in order:
        os.kill(child, order["signal"])


def main():
    rows, columns, command = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    start_read, start_write = os.pipe()
    child, terminal = pty.fork()
    if child == 0:
        os.read(start_read, 1)  # the terminal has its size
        os.execvp(command[0], command)
    resize(terminal, rows, columns)
    os.write(start_write, b"x")
    pending = b""
    inputs = [terminal, 0]
    while True:
        ready, _, _ = select.select(inputs, [], [])
        if 0 in ready:
            data = os.read(0, 65536)
            if not data:
                inputs.remove(0)
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                obey(line, terminal, child)
        if terminal in ready:
            try:
                data = os.read(terminal, 65536)
            except OSError:
                data = b""  # no process has it open any more
            if not data:
                break
            os.write(1, data)
    status = os.waitpid(child, 0)[1]
    code = os.waitstatus_to_exitcode(status)
    sys.exit(128 - code if code < 0 else code)


main()
