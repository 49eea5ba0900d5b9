"""What is known of the machine."""

import pytest

from mle_ideator.sandboxes.facts import _gpu_name


@pytest.mark.parametrize(
    ("text", "name"),
    [("Model: \t\t NVIDIA H200\nIRQ: 12\n", "NVIDIA H200"), ("IRQ: 12\n", "NVIDIA")],
)
def test_a_gpu_is_named_as_its_driver_names_it(tmp_path, text, name):
    file = tmp_path / "information"
    file.write_text(text)
    assert _gpu_name(file) == name
    assert _gpu_name(tmp_path / "gone") == "NVIDIA"
