"""Runs vLLM's OpenAI server and ends its whole process group with it.

A server that is killed leaves its engine and worker processes behind, with their memory and their ports. So a process that
does nothing else waits for the server's end, whatever that is, and then kills what is left of the group.

"vllm serve" would be the usual command, but it looks for a distribution named vllm, and the CPU build has another name.
"""

import os
import select
import signal
import sys

server = os.getpid()
if os.fork() == 0:
    select.select([os.pidfd_open(server)], [], [])
    os.killpg(0, signal.SIGKILL)
os.execv(sys.executable, [sys.executable, "-m", "vllm.entrypoints.openai.api_server", *sys.argv[1:]])
