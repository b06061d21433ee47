"""Labels, positions and lengths that do not exist are errors: no negative one counts from the end, none beyond is left out."""

import backplane as bp
import backplane.nn.functional as F
import pytest

SCORES = bp.ones((3, 4))
WRONG = [-1, -4, 4, 100, -(2**63), 2**63 - 1]


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("function", [F.cross_entropy, F.nll_loss, F.multi_margin_loss], ids=lambda f: f.__name__)
def test_a_label_is_a_class(function, wrong):
    with pytest.raises(bp.DataError, match="out of range"):
        function(SCORES, bp.asarray([0, wrong, 1]))
    with pytest.raises(bp.DataError, match="out of range"):
        bp.vmap(function)(SCORES, bp.asarray([0, wrong, 1]))
    assert bp.isfinite(function(SCORES, bp.asarray([0, 3, 1])))


@pytest.mark.parametrize("function", [F.cross_entropy, F.nll_loss], ids=lambda f: f.__name__)
def test_the_label_to_ignore_is_no_error(function):
    every = function(SCORES, bp.asarray([0, 0, 2]))
    assert function(SCORES, bp.asarray([0, -1, 2]), ignore_index=-1).item() == every.item()
    assert function(SCORES, bp.asarray([0, -100, 2])).item() == every.item()


@pytest.mark.parametrize("wrong", [-2, 4, 100, 2**63 - 1])
@pytest.mark.parametrize("place", [0, 3])
def test_multilabel_margin_takes_classes_and_minus_one(wrong, place):
    target = [1, 0, -1, 2]
    assert F.multilabel_margin_loss(SCORES[0], bp.asarray(target)).item() == 1.0
    target[place] = wrong
    with pytest.raises(bp.DataError, match="out of range"):
        F.multilabel_margin_loss(SCORES[0], bp.asarray(target))


@pytest.mark.parametrize("wrong", [-1, -3, 3, 100])
@pytest.mark.parametrize("options", [{}, {"max_norm": 0.5}, {"scale_grad_by_freq": True}], ids=str)
def test_embedding_takes_rows_that_exist(wrong, options):
    weight = bp.ones((3, 4))
    with pytest.raises(bp.DataError, match="out of range"):
        F.embedding(bp.asarray([0, wrong]), weight, **options)
    with pytest.raises(bp.DataError, match="out of range"):
        F.embedding_bag(bp.asarray([[0, wrong]]), weight, **options)
    assert bp.all(weight == 1)  # max_norm has not scaled a row of a call that fails


@pytest.mark.parametrize("offsets", [[1], [-1], [0, -1], [0, 3], [0, 2, 1], [0, 5, 1], [2**62], [-(2**63)]], ids=str)
@pytest.mark.parametrize("last", [False, True])
def test_offsets_of_bags_do_not_fall(offsets, last):
    offsets = [*offsets, 2] if last else offsets
    with pytest.raises(bp.DataError, match="embedding_bag: argument offsets: found .*, expected positions that begin at 0"):
        F.embedding_bag(bp.asarray([0, 1]), SCORES, bp.asarray(offsets), include_last_offset=last)


@pytest.mark.parametrize("offsets", [[0], [0, 0], [0, 1], [0, 2], [0, 1, 1, 2]], ids=str)
def test_offsets_of_bags_may_repeat(offsets):
    bags = F.embedding_bag(bp.asarray([0, 1]), bp.asarray([[1.0], [10.0]]), bp.asarray(offsets), mode="sum")
    ends = [*offsets[1:], 2]
    assert bags[:, 0].tolist() == [sum([1, 10][start:end]) for start, end in zip(offsets, ends)]


@pytest.mark.parametrize("wrong", [-1, 16, 2**62])
def test_unpooling_takes_positions_that_exist(wrong):
    x = bp.ones((1, 1, 2, 2))
    with pytest.raises(bp.DataError, match="out of range"):
        F.max_unpool2d(x, bp.asarray([[[[0, 1], [2, wrong]]]]), 2)


GOOD = {"targets": [[1, 2], [2, 0]], "input_lengths": [4, 3], "target_lengths": [2, 1]}


@pytest.mark.parametrize(
    "name, wrong",
    [("targets", [[1, 3], [2, 0]]), ("targets", [[1, -1], [2, 0]]), ("input_lengths", [5, 3]), ("input_lengths", [4, -1]),
     ("target_lengths", [3, 1]), ("target_lengths", [2, -1])],
)  # fmt: skip
def test_ctc_takes_labels_and_lengths_that_exist(name, wrong):
    x = F.log_softmax(bp.ones((4, 2, 3)), -1)
    good = {key: bp.asarray(value) for key, value in GOOD.items()}
    assert bp.isfinite(F.ctc_loss(x, **good))
    with pytest.raises(bp.DataError, match="^ctc_loss: .*out of range"):
        F.ctc_loss(x, **{**good, name: bp.asarray(wrong)})


def test_ctc_reads_no_label_beyond_a_length():
    x = F.log_softmax(bp.ones((4, 2, 3)), -1)
    good = {key: bp.asarray(value) for key, value in GOOD.items()}
    beyond = {**good, "targets": bp.asarray([[1, 2], [2, -7]])}
    assert F.ctc_loss(x, **beyond).item() == F.ctc_loss(x, **good).item()


@pytest.mark.parametrize("lengths", [[2, 2], [2, 0], [4, -1]], ids=str)
def test_ctc_lengths_of_joined_targets_add_up(lengths):
    with pytest.raises(ValueError, match="ctc_loss: argument target_lengths: found .*, expected lengths from 0 on whose sum"):
        F.ctc_loss(bp.ones((4, 2, 3)), bp.asarray([1, 2, 2]), bp.asarray([4, 4]), bp.asarray(lengths))
