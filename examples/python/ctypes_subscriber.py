"""A subscriber in Python on the C library: prints what agents say, and lets the person at the keyboard answer.

python3 examples/python/ctypes_subscriber.py target/debug/libaaep_c.so http://127.0.0.1:7117
"""

import ctypes
import json
import sys

aaep = ctypes.CDLL(sys.argv[1])
aaep.aaep_connect.restype = ctypes.c_uint64
aaep.aaep_connect.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
aaep.aaep_next.argtypes = [ctypes.c_uint64, ctypes.c_int, ctypes.POINTER(ctypes.c_void_p)]
aaep.aaep_reply.argtypes = [ctypes.c_uint64, ctypes.c_char_p]
aaep.aaep_close.argtypes = [ctypes.c_uint64]
aaep.aaep_free.argtypes = [ctypes.c_void_p]
aaep.aaep_last_error.restype = ctypes.c_char_p

subscriber = aaep.aaep_connect(sys.argv[2].encode(), b'{"subscriber_id": "ctypes-subscriber"}')
if not subscriber:
    sys.exit(aaep.aaep_last_error().decode())
print("Listening.", flush=True)
line = ctypes.c_void_p()
while aaep.aaep_next(subscriber, -1, ctypes.byref(line)) == 1:
    news = json.loads(ctypes.string_at(line))
    aaep.aaep_free(line)
    if news["news"] == "event" and news["words"]:
        print(news["words"], flush=True)
    elif news["news"] == "ask":
        print(news["words"], "Type accept or reject:", flush=True)
        typed = sys.stdin.readline()
        if not typed:
            break  # Without a keyboard there is nobody to ask.
        answer = typed.strip()
        # Whoever types anything else has not answered.
        if answer in ("accept", "reject"):
            reply = json.dumps({"reply_token": news["reply_token"], "decision": answer})
            if aaep.aaep_reply(subscriber, reply.encode()) != 1:
                print(aaep.aaep_last_error().decode(), flush=True)
    elif news["news"] == "ask_ended":
        print("The question is", news["state"] + ".", flush=True)
aaep.aaep_close(subscriber)
