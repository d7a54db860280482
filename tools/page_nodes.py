#!/usr/bin/env python3
"""page_nodes.py FILE [PAGES]: prints on which memory nodes the pages of a file lie that are in memory: their number on
each node, and for each PAGES [32] of the file the node of most of them, "." for those of which no page is in memory."""
import collections
import ctypes
import mmap
import os
import sys

LINE_PIECES = 64
PROT_READ, MAP_SHARED = 1, 1


def nodes_of(path):
    """Returns the node of each page in memory, None for others."""
    page = mmap.PAGESIZE
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    size = os.path.getsize(path)
    count = (size + page - 1) // page
    with open(path, "rb") as file:
        address = libc.mmap(None, size, PROT_READ, MAP_SHARED, file.fileno(), 0)
    if address == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), "mmap")
    present = (ctypes.c_ubyte * count)()
    libc.mincore(ctypes.c_void_p(address), ctypes.c_size_t(size), present)
    pages = [i for i in range(count) if present[i] & 1]
    for i in pages:
        ctypes.c_ubyte.from_address(address + i * page).value  # maps it: only mapped pages have a node
    addresses = (ctypes.c_void_p * len(pages))(*(address + i * page for i in pages))
    status = (ctypes.c_int * len(pages))()
    if libc.syscall(279, 0, len(pages), addresses, None, status, 0) != 0:  # move_pages(2) of x86-64, which then asks
        raise OSError(ctypes.get_errno(), "move_pages")
    nodes = [None] * count
    for i, node in zip(pages, status):
        nodes[i] = node if node >= 0 else None
    return nodes


def main():
    nodes = nodes_of(sys.argv[1])
    for node, count in sorted(collections.Counter(n for n in nodes if n is not None).items()):
        print(f"node {node}: {count} of {len(nodes)} pages")
    pieces = []
    step = int(sys.argv[2]) if len(sys.argv) > 2 else 32
    for begin in range(0, len(nodes), step):
        known = collections.Counter(n for n in nodes[begin:begin + step] if n is not None)
        pieces.append(str(known.most_common(1)[0][0]) if known else ".")
    for begin in range(0, len(pieces), LINE_PIECES):
        print("".join(pieces[begin:begin + LINE_PIECES]))


main()
