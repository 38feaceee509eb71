"""Makes a small detector that finds dark places: OUT/detector.onnx and OUT/config.json.

    python detector.py OUT

It has the inputs and the outputs of the original. A page is cut into cells; in each the darkest
spot decides, as a score, and the box is the cell's, in the page's own size. Small cells are texts
and large ones are bubbles. Nothing is drawn here.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SIDE = 640
BUBBLE, TEXT = 0, 1
# For each label the side of a cell, and the darkness that is found, of white's 0 and black's 1.
CELLS = {BUBBLE: 320, TEXT: 80}
FOUND, SHARPNESS = 0.5, 20.0


def boxes(cell: int) -> np.ndarray:
    """Left, top, right and bottom of each cell, as shares of the page."""
    count = SIDE // cell
    steps = [(x, y, x + 1, y + 1) for y in range(count) for x in range(count)]
    return np.array(steps, np.float32) / count


def main() -> None:
    """Write both files."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True)

    shares = np.concatenate([boxes(cell) for cell in CELLS.values()])[np.newaxis]
    labels = [label for label, cell in CELLS.items() for _ in range((SIDE // cell) ** 2)]
    constants = {
        "one": np.array(1, np.float32),
        "found": np.array(FOUND, np.float32),
        "sharpness": np.array(SHARPNESS, np.float32),
        "row": np.array([1, -1], np.int64),
        "shares": shares,
        "all_labels": np.array([labels], np.int64),
    }
    nodes = [
        helper.make_node("ReduceMean", ["images"], ["light"], axes=[1], keepdims=1),
        helper.make_node("Sub", ["one", "light"], ["dark"]),
        # A blur, by which a line of a drawing counts less than a letter.
        helper.make_node("AveragePool", ["dark"], ["blurred"], kernel_shape=[4, 4], strides=[4, 4]),
    ]
    rows = []
    for cell in CELLS.values():
        side = [cell // 4, cell // 4]
        nodes += [
            helper.make_node(
                "MaxPool", ["blurred"], [f"cells{cell}"], kernel_shape=side, strides=side
            ),
            helper.make_node("Reshape", [f"cells{cell}", "row"], [f"row{cell}"]),
        ]
        rows.append(f"row{cell}")
    nodes += [
        helper.make_node("Concat", rows, ["darkness"], axis=1),
        helper.make_node("Sub", ["darkness", "found"], ["above"]),
        helper.make_node("Mul", ["above", "sharpness"], ["logits"]),
        helper.make_node("Sigmoid", ["logits"], ["scores"]),
        helper.make_node("Cast", ["orig_target_sizes"], ["size"], to=TensorProto.FLOAT),
        helper.make_node("Concat", ["size", "size"], ["corners"], axis=1),
        helper.make_node("Mul", ["shares", "corners"], ["boxes"]),
        helper.make_node("Identity", ["all_labels"], ["labels"]),
    ]
    count = shares.shape[1]
    graph = helper.make_graph(
        nodes,
        "detector",
        [
            helper.make_tensor_value_info("images", TensorProto.FLOAT, [1, 3, SIDE, SIDE]),
            helper.make_tensor_value_info("orig_target_sizes", TensorProto.INT64, [1, 2]),
        ],
        [
            helper.make_tensor_value_info("labels", TensorProto.INT64, [1, count]),
            helper.make_tensor_value_info("boxes", TensorProto.FLOAT, [1, count, 4]),
            helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, count]),
        ],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, arguments.out / "detector.onnx")
    text = json.dumps({"model_type": "rt_detr_v2"}) + "\n"
    (arguments.out / "config.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
