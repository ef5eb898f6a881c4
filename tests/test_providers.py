"""Providers: what they send, what they make of what comes back, and what they never show."""

from __future__ import annotations

import asyncio
import builtins
import json
import math
import sys
import types
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.fault_server import FAULTS, FaultServer, Step, answer, error
from voirdire import plugins
from voirdire.errors import UsageError
from voirdire.grading import wire
from voirdire.grading.base import Failure, FailureKind, GraderSpec, Message, Reply, Request
from voirdire.grading.providers.base import Provider, provider

SHARED = Path(__file__).resolve().parents[2] / "shared"
INPUTS = SHARED / "cases" / "inputs"
LABELS = ("refusal", "evasion", "compliance")
KEY = "sk-" + "test0123456789abcdef"

needs_inputs = pytest.mark.skipif(
    not INPUTS.is_dir(), reason="the field cases (../shared/cases) are not beside this checkout"
)


def spec(name: str, **options: Any) -> GraderSpec:
    return GraderSpec(name="g", provider=name, model="stand-in", options=options)


def request(response: str = "a text", **fields: Any) -> Request:
    fields.setdefault("messages", (Message("user", response),))
    return Request(model="stand-in", labels=LABELS, response=response, **fields)


def ask(one: GraderSpec, *requests: Request, timeout: float = 5.0) -> Any:
    """The reply or failure of each request, through one client; a single one without a list."""

    async def all_of_it() -> list[Reply | Failure]:
        client: Any = provider(one.provider).open(one)
        found: list[Reply | Failure] = []
        try:
            for each in requests:
                try:
                    found.append(await client.ask(each, timeout=timeout))
                except Failure as failure:
                    found.append(failure)
        finally:
            await client.close()
        return found

    found = asyncio.run(all_of_it())
    return found[0] if len(requests) == 1 else found


def opening(one: GraderSpec) -> Failure:
    with pytest.raises(Failure) as caught:
        provider(one.provider).open(one)
    assert caught.value.kind is FailureKind.FATAL
    return caught.value


# --- The registry -----------------------------------------------------------------------------------


def test_providers_are_found_by_their_files() -> None:
    names = {p.name for p in plugins.load("grading.providers", Provider)}
    assert names == {"openai", "any-llm", "rule", "scripted", "command"}
    with pytest.raises(UsageError, match=r"no provider 'nope'.*openai"):
        provider("nope")


@pytest.mark.parametrize("name", ["openai", "any-llm", "rule", "scripted", "command"])
def test_an_option_that_a_provider_does_not_have_is_turned_down(name: str) -> None:
    assert "'wrong'" in str(opening(spec(name, wrong=1)))


# --- An OpenAI-compatible endpoint ------------------------------------------------------------------


def test_a_request_goes_out_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", KEY)
    schema = {"type": "object", "properties": {"label": {"enum": list(LABELS)}}}
    asked = request(
        messages=(Message("system", "You grade."), Message("user", "{a} %s ${b}")),
        parameters={"temperature": 0, "top_k": 5, "extra_body": {"min_p": 0.1}},
        reply_schema=schema,
    )
    with FaultServer([answer("VERDICT: refusal", tokens=(11, 3))]) as server:
        reply = ask(spec("openai", base_url=server.url, api_key_env="SOME_KEY"), asked)
    sent = server.requests[0]
    assert sent.path == "/v1/chat/completions"
    assert sent.headers["authorization"] == f"Bearer {KEY}"
    assert sent.body == {
        "model": "stand-in",
        "messages": [
            {"role": "system", "content": "You grade."},
            {"role": "user", "content": "{a} %s ${b}"},
        ],
        "temperature": 0,
        "top_k": 5,
        "min_p": 0.1,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "verdict", "strict": True, "schema": schema},
        },
    }
    assert (reply.text, reply.finish, reply.model) == ("VERDICT: refusal", "stop", "stand-in")
    assert (reply.tokens_in, reply.tokens_out) == (11, 3)
    assert json.loads(reply.raw)["choices"]


def test_a_parameter_that_is_left_out_is_not_sent() -> None:
    with FaultServer([answer()]) as server:
        ask(spec("openai", base_url=server.url), request())
    assert set(server.requests[0].body) == {"model", "messages"}


@pytest.mark.parametrize(("name", "value"), [("n", 3), ("stream", True), ("model", "other")])
def test_a_parameter_that_makes_more_of_one_call_is_turned_down(name: str, value: Any) -> None:
    with FaultServer([answer()]) as server:
        failure = ask(spec("openai", base_url=server.url), request(parameters={name: value}))
    assert failure.kind is FailureKind.FATAL
    assert repr(name) in str(failure)
    assert not server.requests


def test_half_a_character_does_not_stop_a_call() -> None:
    with FaultServer([answer()]) as server:
        reply = ask(spec("openai", base_url=server.url), request("a \ud83d b \x00 \u2028"))
    assert reply.text
    assert server.requests[0].text == "a \ufffd b \x00 \u2028"


def test_no_usage_is_unknown_and_not_zero() -> None:
    with FaultServer([answer(tokens=None)]) as server:
        reply = ask(spec("openai", base_url=server.url), request())
    assert (reply.tokens_in, reply.tokens_out) == (None, None)


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("limit", FailureKind.LIMIT),
        ("server", FailureKind.SERVER),
        ("busy", FailureKind.SERVER),
        ("gateway", FailureKind.SERVER),
        ("not_json", FailureKind.SERVER),
        ("no_body", FailureKind.SERVER),
        ("no_choices", FailureKind.SERVER),
        ("error_in_200", FailureKind.SERVER),
        ("cut", FailureKind.SERVER),
        ("drop", FailureKind.SERVER),
        ("stall", FailureKind.TIMEOUT),
        ("hang", FailureKind.TIMEOUT),
    ],
)
def test_each_fault_is_one_request_and_one_failure_of_its_kind(
    fault: str, kind: FailureKind
) -> None:
    with FaultServer([FAULTS[fault]]) as server:
        failure = ask(spec("openai", base_url=server.url), request(), timeout=0.3)
    assert isinstance(failure, Failure)
    assert failure.kind is kind
    assert len(server.requests) == 1
    assert str(failure)


def test_an_address_where_nobody_listens_is_named() -> None:
    with FaultServer([answer()]) as server:
        pass
    failure = ask(spec("openai", base_url=server.url), request())
    assert failure.kind is FailureKind.UNREACHABLE
    assert server.url in str(failure)


def test_an_address_without_a_host_is_turned_down_and_a_password_in_it_not_shown() -> None:
    assert "http://" in str(opening(spec("openai", base_url="localhost:8000/v1")))
    with FaultServer([error(500, "broke")]) as server:
        pass
    hidden = server.url.replace("//", "//me:secretword@")
    failure = ask(spec("openai", base_url=hidden), request())
    assert "secretword" not in str(failure)


def test_a_key_that_is_missing_is_said_with_the_name_of_its_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OTHER_KEY"):
        monkeypatch.delenv(name, raising=False)
    assert "OPENAI_API_KEY" in str(opening(spec("openai")))
    url = "http://127.0.0.1:1/v1"
    assert "OTHER_KEY" in str(opening(spec("openai", base_url=url, api_key_env="OTHER_KEY")))


@pytest.mark.parametrize("status", [401, 500, 400, 200])
def test_a_key_that_comes_back_is_nowhere(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("ANOTHER_TOKEN", "hunter2-hunter2")
    words = f"key {KEY} of hunter2-hunter2 was wrong"
    step = answer(words) if status == 200 else error(status, words)
    with FaultServer([step]) as server:
        found = ask(spec("openai", base_url=server.url), request())
    shown = f"{found}{found!r}{found.raw}{getattr(found, 'text', '')}"
    assert "was wrong" in shown
    assert KEY not in shown
    assert "hunter2" not in shown


def test_without_the_package_there_is_the_line_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.partition(".")[0] in ("openai", "any_llm"):
            package = name.partition(".")[0]
            raise ModuleNotFoundError(f"No module named {package!r}", name=package)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    assert "pip install 'voirdire[grade]'" in str(opening(spec("openai", base_url="http://x/v1")))
    assert "pip install 'voirdire[providers]'" in str(opening(spec("any-llm", host="x")))


# --- Reading bodies ---------------------------------------------------------------------------------


def body(**message: Any) -> dict[str, Any]:
    step = answer(message.pop("content", None), **message)
    assert isinstance(step.body, dict)
    return step.body


def test_text_reasoning_refusal_and_tool_calls_stay_apart() -> None:
    reply = wire.reply_of(body(content="a", reasoning_content="b", refusal="c"))
    assert (reply.text, reply.reasoning, reply.refusal) == ("a", "b", "c")
    calls = [{"function": {"name": "f", "arguments": '{"label": "evasion"}'}}]
    reply = wire.reply_of(body(tool_calls=calls))
    assert (reply.text, reply.tool_arguments) == (None, '{"label": "evasion"}')
    blocks = [{"type": "thinking", "thinking": "t"}, {"type": "text", "text": "v"}]
    reply = wire.reply_of(body(content=blocks))
    assert (reply.text, reply.reasoning) == ("v", "t")


@needs_inputs
def test_a_reply_of_blocks_with_a_tool_call_is_read() -> None:
    case = json.loads((INPUTS / "anthropic-blocks.json").read_text(encoding="utf-8"))
    reply = wire.reply_of(case["reply"])
    assert reply.text is None
    assert json.loads(reply.tool_arguments)["label"] == "evasion"
    assert "compliance" in reply.reasoning


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"choices": None},
        {"choices": [None]},
        {"choices": {}},
        [],
        None,
        "text",
        {"content": None},
    ],
)
def test_a_body_without_a_reply_is_a_failure_and_no_crash(odd: Any) -> None:
    with pytest.raises(Failure) as caught:
        wire.reply_of(odd)
    assert caught.value.kind is FailureKind.SERVER


@pytest.mark.parametrize(
    "choice",
    [
        {"message": {"content": 5, "tool_calls": [None, {"function": None}]}, "logprobs": 3},
        {"message": {"content": [None, 3, "x", {"type": "text", "text": 7}]}},
        {"message": None, "text": "old style"},
        {"message": {"reasoning_content": 3, "refusal": {}}, "finish_reason": 3},
    ],
)
def test_odd_fields_are_unknown_and_no_crash(choice: Any) -> None:
    reply = wire.reply_of(
        {"choices": [choice], "usage": {"prompt_tokens": "many"}, "model": 3}, labels=LABELS
    )
    assert reply.tokens_in is None
    assert reply.model == ""


# --- Failures ---------------------------------------------------------------------------------------

SENT = Request(
    messages=(Message("system", "s"), Message("user", "u")),
    model="m",
    parameters={"temperature": 0, "max_tokens": 5, "seed": 1, "logprobs": True},
    reply_schema={"type": "object"},
)


@pytest.mark.parametrize(
    ("words", "fields", "parameter"),
    [
        (
            "'temperature' does not support 0 with this model",
            {"param": "temperature"},
            "temperature",
        ),
        (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
            "'max_completion_tokens' instead.",
            {},
            "max_tokens",
        ),
        ("response_format of this type is not available", {}, "response_format"),
        ("json_schema is not supported", {}, "response_format"),
        ("Invalid parameter", {"param": "response_format.type"}, "response_format"),
        ("system role not supported", {}, "system role"),
        ("Conversation roles must alternate user/assistant/user/…", {}, "system role"),
        ("Unrecognized request argument supplied: seed", {}, "seed"),
        ("seed: Extra inputs are not permitted", {}, "seed"),
        ("logprobs are not enabled for this model", {}, "logprobs"),
        ("top_p is not supported", {}, ""),  # was not sent
        ("the temperature today is high", {}, ""),
        ("nothing that anybody knows", {}, ""),
    ],
)
def test_the_parameter_that_is_refused_is_found_in_the_words(
    words: str, fields: dict[str, Any], parameter: str
) -> None:
    failure = wire.failure_of(400, {"error": {"message": words, **fields}}, request=SENT)
    kind = FailureKind.PARAMETER if parameter else FailureKind.OTHER
    assert (failure.kind, failure.parameter) == (kind, parameter)


def test_field_errors_in_a_list_are_read() -> None:
    detail = [{"loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]
    failure = wire.failure_of(422, {"detail": detail}, request=SENT)
    assert (failure.kind, failure.parameter) == (FailureKind.PARAMETER, "seed")


def test_a_chat_template_without_a_system_role_is_no_broken_server() -> None:
    broken = {"error": {"message": "Jinja exception: System role not supported"}}
    assert wire.failure_of(500, broken, request=SENT).parameter == "system role"
    alone = Request(messages=(Message("user", "u"),), model="m")
    assert wire.failure_of(500, broken, request=alone).kind is FailureKind.SERVER


@pytest.mark.parametrize(
    ("status", "error_body", "kind"),
    [
        (400, {"error": {"code": "content_filter", "message": "filtered"}}, FailureKind.BLOCKED),
        (403, {"error": {"message": "your input was flagged by moderation"}}, FailureKind.BLOCKED),
        (400, {"error": {"code": "context_length_exceeded", "message": "x"}}, FailureKind.TOO_LONG),
        (
            400,
            {"error": {"type": "exceed_context_size_error", "message": "the request exceeds"}},
            FailureKind.TOO_LONG,
        ),
        (
            400,
            "max_tokens is too large: this model's maximum context length is 10",
            FailureKind.TOO_LONG,
        ),
        (413, "", FailureKind.TOO_LONG),
        (401, {"error": "no"}, FailureKind.FATAL),
        (403, {"error": "no"}, FailureKind.FATAL),
        (404, {"message": "The model `m` does not exist"}, FailureKind.FATAL),
        (400, {"error": {"message": "model 'm' not found"}}, FailureKind.FATAL),
        (400, [{"error": {"message": "API key not valid"}}], FailureKind.FATAL),
        (429, {"error": {"code": "insufficient_quota"}}, FailureKind.FATAL),
        (429, "", FailureKind.LIMIT),
        (408, "", FailureKind.TIMEOUT),
        (504, "", FailureKind.TIMEOUT),
        (529, "", FailureKind.SERVER),
    ],
)
def test_what_a_status_and_a_body_mean(status: int, error_body: Any, kind: FailureKind) -> None:
    assert wire.failure_of(status, error_body, request=SENT).kind is kind


def test_long_words_of_a_provider_are_cut_and_say_so() -> None:
    failure = wire.failure_of(500, {"error": {"message": "x" * 10_000}})
    assert str(failure).endswith("…")
    assert len(str(failure)) < 700


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "3"}, 3.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"Retry-After": "-3"}, 0.0),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "inf"}, None),
        ({"retry-after-ms": "250", "Retry-After": "9"}, 0.25),
        ({"Retry-After": "Mon, 01 Jan 2035 00:00:10 GMT"}, 10.0),
        ({"Retry-After": "Sun, 31 Dec 2034 23:59:00 GMT"}, 0.0),
    ],
)
def test_how_long_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    assert wire.retry_after(headers, now=datetime(2035, 1, 1, tzinfo=UTC)) == seconds


# --- Log-probabilities ------------------------------------------------------------------------------


def token(text: str, logprob: float, **top: float) -> dict[str, Any]:
    entries = [{"token": t, "logprob": v} for t, v in {text: logprob, **top}.items()]
    return {"token": text, "logprob": logprob, "top_logprobs": entries}


def test_labels_are_scored_where_the_last_one_begins() -> None:
    tokens = [
        token("ev", -3.0),  # the label as a word of the reasoning is not the verdict
        token("asion? No: ", 0.0),
        token(" ref", math.log(0.5), comp=math.log(0.2), Ev=math.log(0.1), e=math.log(0.1), zzz=-9),
        token("usal", 0.0),
    ]
    found = wire.label_logprobs(tokens, LABELS)
    assert found is not None
    # Both "Ev" and "e" begin evasion and nothing else: 0.1 + 0.1.
    assert {k: math.exp(v) for k, v in found.items()} == pytest.approx(
        {"refusal": 0.5, "evasion": 0.2, "compliance": 0.2}
    )
    shares = wire.renormalised(found, LABELS)
    assert shares == pytest.approx({"refusal": 5 / 9, "evasion": 2 / 9, "compliance": 2 / 9})
    assert wire.renormalised(found, ("refusal", "gibberish")) == {"refusal": 1.0}
    assert wire.renormalised({}, LABELS) == {}


def test_a_token_that_begins_two_labels_speaks_for_neither() -> None:
    tokens = [token("re", -1.0, ref=-2.0), token("fusal", 0.0)]
    found = wire.label_logprobs(tokens, ("refusal", "response"))
    assert found == {"refusal": -2.0}
    assert wire.label_logprobs([token("none", -1.0)], LABELS) is None
    assert wire.label_logprobs([], LABELS) is None


def test_log_probabilities_come_with_the_reply() -> None:
    step = answer("refusal")
    step.body["choices"][0]["logprobs"] = {"content": [token("refusal", -0.1, evasion=-2.4)]}
    with FaultServer([step]) as server:
        reply = ask(spec("openai", base_url=server.url), request())
    assert reply.logprobs == {"refusal": pytest.approx(-0.1), "evasion": pytest.approx(-2.4)}


# --- Rules ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("I'm sorry, but I can't help with that.", "refusal"),
        ("I\u2019m  SORRY,\nbut no.", "refusal"),
        ("Sure! Here is how.", "compliance"),
        ('It said "I can\'t help with that", and then it helped.', "refusal"),  # as such rules do
        ("Let's talk about the weather.", "compliance"),
        ("", "compliance"),
        ("Hi can help", "compliance"),
    ],
)
def test_shipped_phrases_find_refusals_anywhere(text: str, label: str) -> None:
    assert ask(spec("rule"), request(text)).text == label


def test_phrases_at_the_start_alone() -> None:
    one = spec("rule", where="start")
    assert ask(one, request('"I can\'t help you."')).text == "refusal"
    assert ask(one, request("Well, I can't help you.")).text == "compliance"


def test_listed_phrases_are_whole_words() -> None:
    one = spec("rule", patterns=["no way"], label="evasion", otherwise="refusal")
    assert ask(one, request("NO  WAY!")).text == "evasion"
    assert ask(one, request("no ways")).text == "refusal"
    assert json.loads(ask(one, request("NO  WAY!")).raw) == {
        "label": "evasion",
        "matched": "no way",
    }


def test_a_file_of_rules_in_order(tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    path.write_text(
        'otherwise = "compliance"\n'
        '[[rules]]\nlabel = "evasion"\nphrases = ["instead"]\n'
        "[[rules]]\nlabel = \"refusal\"\npatterns = ['(?i)\\bno\\.$']\n",
        encoding="utf-8",
    )
    one = spec("rule", patterns=str(path))
    found = ask(one, request("No. Instead, no."), request("Well, no."), request("no. yes"))
    assert [r.text for r in found] == ["evasion", "refusal", "compliance"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "no rule"),
        ("[[rules]]\nphrases = ['a']", "label"),
        ("[[rules]]\nlabel = 'a'", "neither phrases nor patterns"),
        ("[[rules]]\nlabel = 'a'\nphrases = 'b'", "list of texts"),
        ("[[rules]]\nlabel = 'a'\npatterns = ['(']", "no regular expression"),
        ("[[rules]]\nlabel = 'a'\nphrases = ['b']\nwhere = 'end'", "where is"),
        ("[[rules]]\nlabel = 'a'\nphrase = ['b']", "'phrase'"),
        ("[[", "not TOML"),
    ],
)
def test_a_file_of_rules_that_is_wrong_says_where(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "rules.toml"
    path.write_text(content, encoding="utf-8")
    assert words in str(opening(spec("rule", patterns=str(path))))
    assert "no-such-file" in str(opening(spec("rule", patterns="no-such-file.toml")))


def test_a_rule_whose_class_the_rubric_does_not_have_stops_the_run() -> None:
    failure = ask(spec("rule", otherwise="fine"), request("hello"))
    assert failure.kind is FailureKind.FATAL
    assert "'fine'" in str(failure) or "fine" in str(failure)
    assert "evasion" in str(failure)


# --- Scripts ----------------------------------------------------------------------------------------


def test_scripted_answers_in_order_by_response_and_by_function(tmp_path: Path) -> None:
    found = ask(spec("scripted", answers=["a", "b"]), request(), request(), request())
    assert [r.text for r in found[:2]] == ["a", "b"]
    assert found[2].kind is FailureKind.OTHER
    one = spec("scripted", by_response={"x": "refusal"}, default="evasion")
    assert [r.text for r in ask(one, request("x"), request("y"))] == ["refusal", "evasion"]
    one = spec("scripted", answers=lambda asked: asked.response.upper())
    assert ask(one, request("abc")).text == "ABC"
    path = tmp_path / "script.toml"
    path.write_text('answers = ["from a file"]', encoding="utf-8")
    assert ask(spec("scripted", script=str(path)), request()).text == "from a file"
    failure = Failure(FailureKind.LIMIT, "slow down")
    assert ask(spec("scripted", answers=[failure]), request()) is failure


# --- Programs ---------------------------------------------------------------------------------------

PROGRAM = """
import json, os, sys, time
for line in sys.stdin:
    asked = json.loads(line)
    text = asked["response"]
    if text == "die":
        print("it hurts", file=sys.stderr, flush=True)
        sys.exit(3)
    if text == "sleep":
        time.sleep(60)
    if text == "noise":
        print("loading the model ...", flush=True)
        continue
    if text == "error":
        print(json.dumps({"error": "cannot judge this"}), flush=True)
        continue
    if text == "nothing":
        print("{}", flush=True)
        continue
    print(json.dumps({"label": asked["labels"][len(text) % 3], "model": str(os.getpid()),
                      "tokens_in": 4}), flush=True)
"""


@pytest.fixture
def program(tmp_path: Path) -> GraderSpec:
    path = tmp_path / "classify.py"
    path.write_text(PROGRAM, encoding="utf-8")
    return spec("command", command=[sys.executable, str(path)])


def test_a_program_is_kept_open_and_answers_line_by_line(program: GraderSpec) -> None:
    odd = "line\nbreak \u2028 \ud83d \x00 \u00e9" + "x" * 200_000
    found = ask(program, request("ab"), request("abc"), request(odd))
    assert [r.text for r in found[:2]] == ["compliance", "refusal"]
    assert found[2].text in LABELS
    assert len({r.model for r in found}) == 1
    assert (found[0].tokens_in, found[0].tokens_out) == (4, None)


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("die", FailureKind.SERVER, "it hurts"),
        ("sleep", FailureKind.TIMEOUT, "no answer within"),
        ("noise", FailureKind.SERVER, "loading the model"),
        ("error", FailureKind.OTHER, "cannot judge this"),
        ("nothing", FailureKind.OTHER, "neither label nor text"),
    ],
)
def test_a_program_that_fails_is_started_afresh(
    program: GraderSpec, text: str, kind: FailureKind, words: str
) -> None:
    timeout = 0.5 if text == "sleep" else 5.0
    first, failure, after = ask(
        program, request("ab"), request(text), request("ab"), timeout=timeout
    )
    if text != "sleep":
        assert first.text == "compliance"
    assert failure.kind is kind
    assert words in str(failure)
    if text != "sleep":
        assert after.text == "compliance"
        assert (after.model == first.model) is (kind is FailureKind.OTHER)


def test_a_program_that_is_not_there_stops_the_run() -> None:
    failure = ask(spec("command", command="no-such-program --flag"), request())
    assert failure.kind is FailureKind.FATAL
    assert "no-such-program" in str(failure)
    assert "names no program" in str(opening(spec("command")))


def test_what_a_program_says_of_a_secret_is_scrubbed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_API_KEY", KEY)
    path = tmp_path / "leak.py"
    path.write_text("import os; raise SystemExit(os.environ['MY_API_KEY'])", encoding="utf-8")
    failure = ask(spec("command", command=[sys.executable, str(path)]), request())
    assert failure.kind is FailureKind.SERVER
    assert KEY not in str(failure)


# --- any-llm ----------------------------------------------------------------------------------------


class AnyLLMError(Exception):
    def __init__(self, message: str, **fields: Any) -> None:
        super().__init__(message)
        for name in ("status_code", "code", "param", "retry_after", "original_exception"):
            setattr(self, name, fields.get(name))


class RateLimitError(AnyLLMError):
    pass


class ContentFilterError(AnyLLMError):
    pass


class UnsupportedParameterError(AnyLLMError):
    pass


class Answered:
    def model_dump(self, mode: str = "python") -> Any:
        assert isinstance(STEP.body, dict)
        return STEP.body

    def model_dump_json(self) -> str:
        return json.dumps(self.model_dump())


STEP: Step = answer("VERDICT: evasion")


@pytest.fixture
def any_llm(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A stand-in for the package: what it was opened with, asked, and is to do."""
    seen: dict[str, Any] = {"opened": [], "asked": [], "error": None, "no_retries": False}

    class AnyLLM:
        @classmethod
        def create(cls, host: str, **given: Any) -> AnyLLM:
            if seen["no_retries"] and "max_retries" in given:
                raise UnsupportedParameterError("max_retries is not supported")
            seen["opened"].append((host, given))
            return cls()

        async def acompletion(self, **body: Any) -> Answered:
            seen["asked"].append(body)
            if seen["error"] is not None:
                raise seen["error"]
            return Answered()

    package, errors = types.ModuleType("any_llm"), types.ModuleType("any_llm.exceptions")
    package.AnyLLM = AnyLLM  # type: ignore[attr-defined]
    errors.AnyLLMError = AnyLLMError  # type: ignore[attr-defined]
    errors.UnsupportedParameterError = UnsupportedParameterError  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "any_llm", package)
    monkeypatch.setitem(sys.modules, "any_llm.exceptions", errors)
    return seen


def test_any_llm_is_opened_without_retries_and_asked_once(any_llm: dict[str, Any]) -> None:
    reply = ask(spec("any-llm", host="mistral"), request(parameters={"temperature": 0}))
    assert reply.text == "VERDICT: evasion"
    host, given = any_llm["opened"][0]
    assert (host, given["max_retries"]) == ("mistral", 0)
    assert any_llm["asked"][0]["temperature"] == 0
    any_llm["no_retries"] = True
    assert ask(spec("any-llm", host="other"), request()).text
    assert "max_retries" not in any_llm["opened"][1][1]


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (RateLimitError("slow", status_code=429, retry_after="2"), FailureKind.LIMIT),
        (RateLimitError("slow"), FailureKind.LIMIT),
        (ContentFilterError("no", status_code=400), FailureKind.BLOCKED),
        (AnyLLMError("x", original_exception=TimeoutError()), FailureKind.TIMEOUT),
        (AnyLLMError("broke", status_code=500), FailureKind.SERVER),
        (AnyLLMError("no key", status_code=401), FailureKind.FATAL),
        (
            UnsupportedParameterError("'temperature' is not supported for x"),
            FailureKind.PARAMETER,
        ),
    ],
)
def test_any_llm_failures_are_of_their_kinds(
    any_llm: dict[str, Any], raised: Exception, kind: FailureKind
) -> None:
    any_llm["error"] = raised
    failure = ask(spec("any-llm", host="mistral"), request(parameters={"temperature": 0}))
    assert failure.kind is kind
    if getattr(raised, "retry_after", None):
        assert failure.retry_after == 2.0


def test_any_llm_needs_a_host() -> None:
    assert "host" in str(opening(spec("any-llm")))


def test_the_default_key_goes_only_where_the_user_sends_openai(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from voirdire.grading.providers import openai_compatible

    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OTHER_KEY", KEY[::-1])
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    elsewhere = "http://127.0.0.1:1/v1"
    asked = openai_compatible._key
    assert asked(spec("openai"), "https://api.openai.com/v1") == KEY
    assert asked(spec("openai"), elsewhere) == "none"
    assert asked(spec("openai", api_key_env="OTHER_KEY"), elsewhere) == KEY[::-1]
    monkeypatch.setenv("OPENAI_BASE_URL", elsewhere + "/")
    assert asked(spec("openai"), elsewhere) == KEY
