"""From a Prompt to token ids through the model's own chat template, and back.

Documents are untrusted. A document that holds `<|im_end|>` must not end its message, so whatever a document
says, the control tokens of an encoded prompt are those that the template wrote. Role markers that a template
writes as ordinary text (no control token) cannot be told from a document's; such models are not protected.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from pipeline.engines.models import load_tokenizer
from pipeline.errors import EngineError
from pipeline.records import Prompt

# Rendered in place of the contents to learn what the template itself writes. Letters only: templates trim.
_SYSTEM = "GristmillSystemText"
_USER = "GristmillUserText"


class ChatTokenizer:
    """Encodes prompts for one model. One thread only: Hugging Face keeps `split_special_tokens` as state."""

    def __init__(self, path: str) -> None:
        """Load the tokenizer of the model in directory `path` (or of a hub name).

        Raises:
            EngineError: no usable tokenizer, or a chat template that does not place both messages.
        """
        self.tokenizer: Any = load_tokenizer(path)
        if not self.tokenizer.chat_template:
            raise EngineError(f"the model {path} has no chat template. Use an instruction-tuned model.")
        added = [(int(id_), token) for id_, token in self.tokenizer.added_tokens_decoder.items()]
        # Runs of blanks are added tokens in some vocabularies; they control nothing.
        control = [(id_, token) for id_, token in added if token.content.strip()]
        self.control_ids = frozenset(id_ for id_, _ in control)
        self._unsplit = _alternatives([token.content for _, token in control if not token.special])
        self._longest = max(len(token) for token in self.tokenizer.get_vocab())
        self._has_system = self._accepts_system_role()
        self._parts = self._template_parts(path)
        self._template_control = [id_ for part in self._parts for id_ in self._control_of(self._plain(part))]

    def encode(self, prompt: Prompt) -> list[int]:
        """Token ids of the prompt, ending where the assistant's answer begins.

        Lone surrogates, which are no text, become question marks.
        """
        system, user = _encodable(prompt.system), _encodable(prompt.user)
        ids = self._plain(self._render(system, user))
        if self._control_of(ids) == self._template_control:
            return ids
        head, middle, tail = self._parts
        return [
            *self._plain(head),
            *self._literal(system),
            *self._plain(middle),
            *self._literal(user),
            *self._plain(tail),
        ]

    def surely_exceeds(self, prompt: Prompt, limit: int) -> bool:
        """Whether the prompt is so long that no tokenisation has at most `limit` tokens; costs no tokenising."""
        return len(prompt.system) + len(prompt.user) > limit * self._longest

    def decode(self, ids: Sequence[int]) -> str:
        """The text of output tokens, without control tokens. Bytes that make no character become U+FFFD."""
        text = self.tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return str(text)

    def text_ids(self, text: str) -> list[int]:
        """Token ids of bare text (no template), none of them a control token."""
        return self._literal(text)

    def _render(self, system: str, user: str) -> str:
        prompt = Prompt(system, user) if self._has_system else None
        messages = prompt.messages() if prompt else [{"role": "user", "content": f"{system}\n\n{user}"}]
        return str(self.tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False))

    def _accepts_system_role(self) -> bool:
        from jinja2 import TemplateError

        messages = Prompt(_SYSTEM, _USER).messages()
        try:
            text = self.tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
        except TemplateError:
            return False
        return _SYSTEM in text

    def _template_parts(self, path: str) -> tuple[str, str, str]:
        """What the template writes before, between and after the two contents."""
        match = re.fullmatch(f"(.*){_SYSTEM}(.*){_USER}(.*)", self._render(_SYSTEM, _USER), re.DOTALL)
        if match is None:
            raise EngineError(f"the chat template of {path} drops the prompt. Use an instruction-tuned one.")
        head, middle, tail = match.groups()
        return head, middle, tail

    def _control_of(self, ids: Sequence[int]) -> list[int]:
        return [id_ for id_ in ids if id_ in self.control_ids]

    def _plain(self, text: str) -> list[int]:
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def _literal(self, text: str) -> list[int]:
        """Ids of text in which control tokens are mere characters."""
        if self._unsplit is None:
            return self._split(text)
        # `split_special_tokens` leaves added tokens whole that are not marked special: part them by hand.
        cuts = [0, *(found.start() + 1 for found in self._unsplit.finditer(text)), len(text)]
        pieces = [text[start:end] for start, end in pairwise(cuts)]
        return [id_ for piece in pieces for id_ in self._split(piece)]

    def _split(self, text: str) -> list[int]:
        encoded = self.tokenizer(text, add_special_tokens=False, split_special_tokens=True)
        return list(encoded["input_ids"])


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


def _alternatives(strings: Sequence[str]) -> re.Pattern[str] | None:
    """Matches any of the strings, the longest first; None if there are none."""
    if not strings:
        return None
    return re.compile("|".join(re.escape(item) for item in sorted(strings, key=len, reverse=True)))
