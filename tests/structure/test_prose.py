"""Plain English in what users read: pages have short sentences and none of the forms that readers have to decode.

FORMS lists them, each with what to write instead. A page (README, docs/, changes/, ...) has none of them. In sources,
comments and error texts may have few of them: at most SOURCES per 1,000 words.
"""

import pathlib
import re

import source_tree

LONGEST = 35  # words of a sentence
SOURCES = 1.0  # findings per 1,000 words
FORMS = {
    r"\b(is|are|was|were) no (?!longer|more|less|need|different|such|other|op\b)\w+": 'write "is not a ..."',
    r"\bof (which|whom|whose)\b|\bto whom\b|\bby which\b|\bbehind which\b|\bfor whom\b": "make two sentences",
    r"\b(is|are) (?-i:none)\b|\bnone of (them|those|these|theirs)\b": 'write "is not a ..."',
    r"\b(has|have|had) not (an?|the|its|their|any|so|enough|full|\d+)\b": 'write "does not have"',
    r"\bwhoever\b|\bwhatever (it|they|was|is)\b|\bwherever it is\b": "name the subject",
    r"\b(those|that|ones) of (the|a|an|its|their|our|this)\b": "repeat the noun",
    r"\bnor (is|are|has|have|does)\b|\bneither\b.*\bnor\b": "subject first",
    r"\bin silence\b|\bsuch (a|an) one\b|\bthe same holds\b|\blikewise\b|\bwhereof\b|\bthereby\b|\bhence\b": "a plain word",
    r"\b(goes|go|went) by (its |their )?name\b|\bstands? (upright|ready)\b|\b(is|are|not) had\b": "the field's term",
}
THERE = re.compile(r"\bthere (is|are|was|were) no\b", re.IGNORECASE)
PATTERNS = [(re.compile(form, re.IGNORECASE), better) for form, better in FORMS.items()]
COMMENT = re.compile(r"^\s*(?://+|#(?!!|include|define|if|el|end|pragma|undef|error)|\*)\s?(.*)$")
TEXT = re.compile(r'"((?:[^"\\]|\\.){25,})"')
FILES = [name for name in source_tree.tracked_files() if not name.startswith(("third_party/", "tests/codegen/golden"))]
PAGES = [name for name in FILES if name.endswith(".md")]
CODE = [name for name in FILES if pathlib.PurePosixPath(name).suffix in source_tree.SOURCE_SUFFIXES | {".py", ".yaml", ".cmake", ".comp", ".glsl"}
        and name != "tests/structure/test_prose.py"]


def forms(line):
    """What to write instead, for each form that stands in the line."""
    line = THERE.sub("", line)
    return [f"{match[0]!r}: {better}" for form, better in PATTERNS if (match := form.search(line))]


def page_lines(text):
    """(number, line) of the prose of a page: without code, tables, comments and addresses."""
    is_code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif not is_code and not line.lstrip().startswith(("|", "<!--", "    ")):
            yield number, re.sub(r"`[^`]*`|\]\([^)]*\)|[#*>\[]", lambda found: "x" if found[0].startswith("`") else "", line)


def source_lines(text):
    """(number, line) of comments and of strings that are sentences."""
    for number, line in enumerate(text.splitlines(), 1):
        if comment := COMMENT.match(line):
            yield number, comment[1]
        else:
            yield from ((number, found) for found in TEXT.findall(line) if found.count(" ") > 3 and not re.search(r"[{}<>;]|\\n", found))


def long_sentences(lines):
    """(number of the first line of the paragraph, or of the blank line before it; words) of each sentence of more than LONGEST words; a list's item is a paragraph."""
    paragraphs, last = [], -1
    for number, line in lines:
        if not line.strip() or number != last + 1 or re.match(r"\s*[-\d]", line):
            paragraphs.append((number, []))
        paragraphs[-1][1].append(line.strip())
        last = number
    for number, paragraph in paragraphs:
        for sentence in re.split(r"(?<=[.!?:;])\s+", " ".join(paragraph)):
            if len(sentence.split()) > LONGEST:
                yield number, len(sentence.split())


def read(name):
    return (source_tree.ROOT / name).read_text(encoding="utf-8")


def test_pages_have_no_form_that_readers_decode():
    assert [f"{name}:{number}: {found}" for name in PAGES for number, line in page_lines(read(name)) for found in forms(line)] == []


def test_sentences_of_pages_are_short():
    found = [f"{name}:{number}: {words} words, expected at most {LONGEST}" for name in PAGES for number, words in long_sentences(page_lines(read(name)))]
    assert found == []


def test_sources_have_few_forms_that_readers_decode():
    words, found = 0, []
    for name in CODE:
        for number, line in source_lines(read(name)):
            words += len(line.split())
            found += [f"{name}:{number}: {form}" for form in forms(line)]
    assert len(found) <= SOURCES * words / 1000, "\n".join(found)


def test_the_law_sees_what_it_forbids():
    for line in ("The key is no name.", "A list of which one is read.", "It is none of these.", "Whoever calls it waits.", "The dtype is that of the first."):
        assert forms(line), line
    for line in ("There is no file.", "It is no longer used.", "x does not have a name.", "None of the kernels runs."):
        assert forms(line) == [], line
    page = "# A\n\n" + "word " * 36 + ".\n\n- short\n\n```\n" + "code " * 40 + "\n```\n"
    assert list(long_sentences(page_lines(page))) == [(2, 37)]
    assert list(source_lines("x = 1  # not whole\n// a comment\n")) == [(2, "a comment")]
