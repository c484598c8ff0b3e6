"""Speaks to a server as its users do: with OpenAI's and Anthropic's own Python packages.

    clients.py URL

Each line of output is one call: {"call", "text", "prompt", "completion", "cached"}; what the answer does not tell is null.
Each conversation is held twice, so that the second time its prompt is warm.
"""

import json
import sys

import anthropic
import openai

URL = sys.argv[1]
MODEL = "m"
RULES = " ".join(f"Rule {i} is that rule {i} is kept." for i in range(60))
QUESTION = "What is the second rule?"

gpt = openai.OpenAI(base_url=URL + "/v1", api_key="none", max_retries=0, timeout=30)
claude = anthropic.Anthropic(base_url=URL, api_key="none", max_retries=0, timeout=30)


def tell(call, text, prompt, completion=None, cached=None):
    print(json.dumps({"call": call, "text": text, "prompt": prompt, "completion": completion, "cached": cached}))


def tell_chat(call, text, usage):
    tell(call, text, usage.prompt_tokens, usage.completion_tokens, usage.prompt_tokens_details.cached_tokens)


def chat():
    messages = [{"role": "system", "content": "Chat. " + RULES}, {"role": "user", "content": QUESTION}]
    whole = gpt.chat.completions.create(model=MODEL, messages=messages, max_tokens=8)
    tell_chat("chat", whole.choices[0].message.content, whole.usage)
    text, usage = "", None
    for chunk in gpt.chat.completions.create(
        model=MODEL, messages=messages, max_tokens=8, stream=True, stream_options={"include_usage": True}
    ):
        text += "".join(choice.delta.content or "" for choice in chunk.choices)
        usage = chunk.usage or usage
    tell_chat("chat stream", text, usage)


def completions():
    whole = gpt.completions.create(model=MODEL, prompt="Completions. " + RULES, max_tokens=8)
    tell_chat("completions", whole.choices[0].text, whole.usage)


def tell_response(call, response):
    usage = response.usage
    tell(call, response.output_text, usage.input_tokens, usage.output_tokens, usage.input_tokens_details.cached_tokens)


def responses():
    ask = dict(model=MODEL, instructions="Responses. " + RULES, input=QUESTION, max_output_tokens=8)
    tell_response("responses", gpt.responses.create(**ask))
    text = ""
    for event in gpt.responses.create(**ask, stream=True):
        if event.type == "response.output_text.delta":
            text += event.delta
        if event.type == "response.completed":
            assert event.response.output_text == text, (event.response.output_text, text)
            tell_response("responses stream", event.response)


def embeddings():
    for call in "embeddings", "embeddings again":
        answer = gpt.embeddings.create(model=MODEL, input=["Embeddings. " + RULES, QUESTION])
        vectors = [item.embedding for item in answer.data]
        assert all(abs(sum(x * x for x in v) - 1) < 1e-3 for v in vectors), vectors
        tell(call, f"{vectors[0][0]:.6f}", answer.usage.prompt_tokens)


def tell_message(call, message):
    usage = message.usage
    read, written = usage.cache_read_input_tokens or 0, usage.cache_creation_input_tokens or 0
    tell(call, message.content[0].text, usage.input_tokens + read + written, usage.output_tokens, read)


def messages():
    ask = dict(model=MODEL, system="Messages. " + RULES, messages=[{"role": "user", "content": QUESTION}])
    tell_message("messages", claude.messages.create(**ask, max_tokens=8))
    with claude.messages.stream(**ask, max_tokens=8) as stream:
        text = "".join(stream.text_stream)
        message = stream.get_final_message()
    assert message.content[0].text == text, (message.content, text)
    tell_message("messages stream", message)
    tell("count tokens", "", claude.messages.count_tokens(**ask).input_tokens)


def errors():
    for kind, ask in (
        (openai.NotFoundError, lambda: gpt.chat.completions.create(model="nope", messages=[{"role": "user", "content": "x"}])),
        (openai.BadRequestError, lambda: gpt.responses.create(model=MODEL, input=[])),
        (anthropic.NotFoundError, lambda: claude.messages.create(model="nope", max_tokens=1, messages=[{"role": "user", "content": "x"}])),
    ):
        try:
            ask()
        except kind as error:
            tell("error", kind.__module__.split(".")[0] + str(error.status_code), None)
        else:
            raise AssertionError(f"no {kind}")


for part in chat, completions, responses, embeddings, messages, errors:
    part()
