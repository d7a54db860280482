#!/usr/bin/env python3
"""Checks the English of comments: check_prose.py [ROOT].

A sentence in a comment of include/shunt/ has at most MOST_WORDS words; a semicolon also ends a sentence. No paragraph
of a comment in CLEAN_FOLDERS begins with one of FRAGMENTS.
"""

import pathlib
import re
import sys

import check_includes

MOST_WORDS = 25
FRAGMENTS = ("Of", "As", "In place of", "Such", "That which", "Nothing of")
# The folders among include, src, cli and bindings in which no comment begins with a fragment.
CLEAN_FOLDERS = ["include"]
SUFFIXES = check_includes.SUFFIXES | {".c"}

# Comments, and literals, so that "https://" in a string is not taken for a comment.
TOKEN = re.compile(r"""'(?:\\.|[^'\\\n])'|"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/""", re.DOTALL)
MARKS = re.compile(r"^//+|^/\*+|^\s*\*(?!/)|\*/$")
SKIPPED_WORDS = {"REQUIRES:", "Errors:"}


def paragraphs(text):
    """Yields each paragraph of each comment as a list of (line number, text), without URLs and indented code."""
    found, end = [], None  # end: line and column of a comment that the next line may continue
    for match in TOKEN.finditer(text):
        comment = match.group()
        if comment[0] != "/":
            continue
        before = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
        line = text.count("\n", 0, match.start()) + 1
        is_block = comment.startswith("/*")
        if is_block or before.strip() or end != (line - 1, len(before)):
            found.append([])
        end = None if is_block else (line, len(before))
        for words in comment.split("\n"):
            words = MARKS.sub("", words).rstrip()
            if not words.strip() or words.strip().startswith("NOLINT"):
                found.append([])
            elif not words.startswith("     ") and not re.fullmatch(r" *https?://\S+", words):
                found[-1].append((line, words.strip()))
            line += 1
    return [paragraph for paragraph in found if paragraph]


def sentences(paragraph):
    """Yields the line number of the first word and the number of words of each sentence."""
    begin, count = None, 0
    for line, text in paragraph:
        for word in text.split():
            if re.search(r"\w", word) and word not in SKIPPED_WORDS:
                begin, count = begin or line, count + 1
            if begin and re.search(r"[.;][)\"'`]?$", word):
                yield begin, count
                begin, count = None, 0
    if begin:
        yield begin, count


def fragment_in(paragraph):
    """Returns the fragment that a paragraph begins with, or None."""
    return next((each for each in FRAGMENTS if f"{paragraph[0][1]} ".startswith(each + " ")), None)


def problems(root):
    found = []
    for folder in sorted({"include", *CLEAN_FOLDERS}):
        for path in sorted(each for each in (root / folder).rglob("*") if each.suffix in SUFFIXES):
            where = path.relative_to(root)
            for paragraph in paragraphs(path.read_text(encoding="utf-8")):
                fragment = fragment_in(paragraph) if folder in CLEAN_FOLDERS else None
                if fragment:
                    found.append(f'{where}:{paragraph[0][0]}: a comment begins with "{fragment}"')
                if folder == "include":
                    found += [f"{where}:{line}: a sentence has {count} words; at most {MOST_WORDS} are allowed"
                              for line, count in sentences(paragraph) if count > MOST_WORDS]
    return found


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent).resolve()
    found = problems(root)
    for problem in found:
        print(problem)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
