#!/usr/bin/env python3
"""What an application does with the OpenAI SDK, against a server whose URL is the argument."""
import asyncio
import sys

import openai

QUESTION = [{"role": "user", "content": "What is 4822 + 22 - 2763?"}]
MODEL = "tokenrouter"


def chat(client):
    whole = client.chat.completions.create(model=MODEL, messages=QUESTION, temperature=0, max_tokens=200)
    text = whole.choices[0].message.content
    assert "2081" in text, text
    assert whole.choices[0].finish_reason == "stop"
    assert whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens

    pieces, usage = [], None
    with client.chat.completions.create(model=MODEL, messages=QUESTION, temperature=0, max_tokens=200,
                                        stream=True, stream_options={"include_usage": True}) as stream:
        for chunk in stream:
            if chunk.choices and chunk.choices[0].delta.content:
                pieces.append(chunk.choices[0].delta.content)
            usage = chunk.usage or usage
    assert "".join(pieces) == text
    assert usage.completion_tokens == whole.usage.completion_tokens

    stopped = client.chat.completions.create(model=MODEL, messages=QUESTION, temperature=0,
                                             max_completion_tokens=200, stop=["</think>"])
    assert stopped.choices[0].message.content == text[:text.index("</think>")]


def logprobs(client):
    answer = client.chat.completions.create(model=MODEL, messages=QUESTION, temperature=0, max_tokens=20,
                                            logprobs=True, top_logprobs=3)
    content = answer.choices[0].logprobs.content
    assert len(content) == answer.usage.completion_tokens == 20
    assert "".join(x.token for x in content) == answer.choices[0].message.content
    for x in content:
        assert x.logprob <= 0 and len(x.top_logprobs) == 3
        assert bytes(x.bytes).decode() == x.token
        assert x.top_logprobs[0].logprob >= x.top_logprobs[2].logprob


def completions(client):
    answer = client.completions.create(model=MODEL, prompt=["Maya has", "What is"], n=2, max_tokens=8,
                                       temperature=1.2, seed=3)
    assert [x.index for x in answer.choices] == [0, 1, 2, 3]
    again = client.completions.create(model=MODEL, prompt=["Maya has", "What is"], n=2, max_tokens=8,
                                      temperature=1.2, seed=3)
    assert [x.text for x in answer.choices] == [x.text for x in again.choices]


def loglikelihood(client):
    """As evaluation harnesses ask: token ids in a batch, echoed with their log-probabilities."""
    ids = client.post("/../tokenize", cast_to=object, body={"prompt": "What is 2 + 2? It is 4."})["tokens"]
    answer = client.completions.create(model=MODEL, prompt=[ids, ids[:5]], max_tokens=1, temperature=0,
                                       logprobs=1, echo=True, seed=1234)
    first, second = (x.logprobs for x in answer.choices)
    assert len(first.tokens) == len(ids) + 1 and len(second.tokens) == 6
    assert first.token_logprobs[0] is None and first.top_logprobs[0] is None
    assert all(x < 0 for x in first.token_logprobs[1:len(ids)])
    assert all(abs(a - b) < 1e-6 for a, b in zip(first.token_logprobs[1:5], second.token_logprobs[1:5]))
    for value, top in zip(first.token_logprobs[1:], first.top_logprobs[1:]):
        assert value <= max(top.values()) + 1e-6
    # What was generated is the likeliest, by definition of temperature 0 on the model that wrote it.
    assert answer.choices[0].text.startswith("What is 2 + 2? It is 4.")


def errors(client):
    for wrong, param in [({"temperature": 99999}, "temperature"), ({"extra_body": {"no_such": 1}}, "no_such"),
                         ({"presence_penalty": 1.5}, "presence_penalty")]:
        try:
            client.chat.completions.create(model=MODEL, messages=QUESTION, **wrong)
            raise AssertionError("it must be refused")
        except openai.BadRequestError as e:
            assert e.param == param, e
    try:
        client.models.retrieve("nonesuch")
        raise AssertionError("it must not be found")
    except openai.NotFoundError:
        pass


def extensions(client):
    answer = client.chat.completions.create(model=MODEL, messages=QUESTION, temperature=0, max_tokens=50,
                                            extra_body={"routing": True, "return_token_ids": True, "top_k": 5})
    choice = answer.choices[0]
    assert len(choice.routing["models"]) == len(choice.token_ids) == answer.usage.completion_tokens
    assert set(choice.routing["models"]) <= {"abacus-xs", "abacus-m"}


async def many(url):
    client = openai.AsyncOpenAI(base_url=url + "/v1", api_key="none", max_retries=0)
    answers = await asyncio.gather(*[
        client.chat.completions.create(model=MODEL, messages=QUESTION, temperature=0, max_tokens=200)
        for _ in range(24)])
    assert len({x.choices[0].message.content for x in answers}) == 1

    stream = await client.chat.completions.create(model=MODEL, messages=QUESTION, stream=True,
                                                  extra_body={"ignore_eos": True}, max_tokens=1500)
    async for _ in stream:
        break
    await stream.close()
    await client.close()


def main():
    url = sys.argv[1]
    client = openai.OpenAI(base_url=url + "/v1", api_key="none", max_retries=0)
    assert MODEL in [x.id for x in client.models.list()]
    for test in (chat, logprobs, completions, loglikelihood, errors, extensions):
        test(client)
        print(f"openai sdk: {test.__name__} passed")
    asyncio.run(many(url))
    print("openai sdk: many at a time passed")


if __name__ == "__main__":
    main()
