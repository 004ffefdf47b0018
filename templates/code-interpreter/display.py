"""Adds two formats to the results of a Python kernel: the data of a figure and that of a table.

"e2b/chart" describes a matplotlib figure as the clients of E2B read it (ChartType and ScaleType of
their types), "e2b/data" has the values of a pandas table by column. Both know the class by its name,
so neither library is imported before the code does it.
"""

import math
import re

from IPython.core.formatters import BaseFormatter
from traitlets import ObjectName, Unicode

CELLS_MAX = 200000  # of a table, or points of a chart


class DataFormatter(BaseFormatter):
    format_type = Unicode("e2b/data")
    print_method = ObjectName("_repr_e2b_data_")
    _return_type = dict


class ChartFormatter(BaseFormatter):
    format_type = Unicode("e2b/chart")
    print_method = ObjectName("_repr_e2b_chart_")
    _return_type = dict

    def __call__(self, obj):
        # matplotlib-inline removes what is registered for figures from every formatter.
        if any((each.__module__, each.__name__) == ("matplotlib.figure", "Figure") for each in type(obj).__mro__):
            return figure_chart(obj)
        return super().__call__(obj)


def install(shell):
    """Registers both formats with the shell of a kernel."""
    for kind in (DataFormatter, ChartFormatter):
        formatter = kind(parent=shell.display_formatter)
        shell.display_formatter.formatters[formatter.format_type] = formatter
    shell.display_formatter.formatters["e2b/data"].for_type_by_name(
        "pandas.core.frame", "DataFrame", table_data)


def plain(value):
    """Returns a value as JSON has it: dates as text, what is no number as null."""
    if hasattr(value, "item"):  # of numpy
        value = value.astype("datetime64[us]").item() if value.dtype.kind == "M" else value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if hasattr(value, "isoformat"):
        text = value.isoformat()
        return None if text == "NaT" else text
    return str(value)


def number(value):
    """Returns a coordinate without the last digits, which depend on the order of operations."""
    value = plain(value)
    return float(f"{value:.12g}") if isinstance(value, float) else value


def table_data(table):
    if table.size > CELLS_MAX:
        return None
    return {str(name): [plain(each) for each in table.iloc[:, i].tolist()]
            for i, name in enumerate(table.columns)}


# Charts.


def figure_chart(figure):
    from matplotlib.axes import Axes
    axes = [each for each in figure.axes if isinstance(each, Axes)]
    try:
        charts = [axes_chart(each) for each in axes]
    except Exception:  # pylint: disable=broad-except  # the picture is there in any case
        return {"type": "unknown", "title": None, "elements": []}
    if not charts:
        return None
    if len(charts) == 1:
        return charts[0]
    title = figure._suptitle.get_text() if figure._suptitle else None
    return {"type": "superchart", "title": title or None, "elements": charts}


def is_grid(line):
    """Whether a line spans the axes, as axhline and axvline draw it."""
    return line.get_transform() in (line.axes.get_xaxis_transform(which="grid"),
                                    line.axes.get_yaxis_transform(which="grid"))


def axes_chart(axes):
    from matplotlib.collections import PathCollection
    from matplotlib.lines import Line2D
    from matplotlib.patches import PathPatch, Rectangle, Wedge
    from matplotlib.text import Text
    artists = [each for each in axes.get_children() if each in axes._children and
               not isinstance(each, Text)]
    lines = [each for each in artists if isinstance(each, Line2D) and not is_grid(each)]
    others = [each for each in artists if not isinstance(each, Line2D)]

    def all_are(kind):
        return bool(others) and all(isinstance(each, kind) for each in others)

    if not others and is_box_plot(lines):
        return box_chart(axes, boxes_of_lines(lines))
    if not others:
        return {**point_chart(axes, "line"), "elements": [line_points(each) for each in lines]}
    if all_are(PathPatch):
        return box_chart(axes, boxes_of_patches(others, lines))
    if lines:
        return {**head(axes, "unknown"), "elements": []}
    if all_are(PathCollection):
        return {**point_chart(axes, "scatter"),
                "elements": [scatter_points(each, i) for i, each in enumerate(others)]}
    if all_are(Wedge):
        return {**head(axes, "pie"), "elements": [pie_part(each) for each in others]}
    if all_are(Rectangle):
        return bar_chart(axes)
    return {**head(axes, "unknown"), "elements": []}


def head(axes, kind):
    return {"type": kind, "title": axes.get_title() or None}


def unit(label):
    found = re.search(r"\s\((.+?)\)|\[(.+?)\]", label or "")
    return found and (found[1] or found[2])


def planar(axes, kind):
    x, y = axes.get_xlabel() or None, axes.get_ylabel() or None
    return {**head(axes, kind), "x_label": x, "y_label": y, "x_unit": unit(x), "y_unit": unit(y)}


def turned(chart):
    """Exchanges what is said of x and y: the bars or boxes lie."""
    pairs = {"x_label": "y_label", "x_unit": "y_unit"}
    back = {new: old for old, new in pairs.items()}
    return {key: chart[pairs.get(key, back.get(key, key))] for key in chart}


def is_date(axis):
    return "Date" in type(axis.converter).__name__


def ticks(axes, letter):
    from matplotlib.dates import num2date
    axis = getattr(axes, letter + "axis")
    places = getattr(axes, f"get_{letter}ticks")()
    labels = [each.get_text() for each in getattr(axes, f"get_{letter}ticklabels")()]
    scale = getattr(axes, f"get_{letter}scale")()
    if is_date(axis):
        return [num2date(each).isoformat() for each in places], labels, "datetime"
    places = [number(each) for each in places]
    if "Category" in type(axis.converter).__name__:
        scale = "categorical"
    elif scale == "linear" and labels and places == list(range(len(places))) and \
            not any(text == str(i) for i, text in enumerate(labels)):
        scale = "categorical"
    return places, labels, scale


def point_chart(axes, kind):
    chart = planar(axes, kind)
    for letter in "xy":
        chart[letter + "_ticks"], chart[letter + "_tick_labels"], chart[letter + "_scale"] = ticks(axes, letter)
    return chart


def pairs_of(xs, ys):
    return [[number(x), number(y)] for x, y in list(zip(xs, ys))[:CELLS_MAX]]


def line_points(line):
    label = line.get_label()
    hidden = re.fullmatch(r"_child(\d+)", label)
    return {"label": f"Line {hidden[1]}" if hidden else label,
            "points": pairs_of(line.get_xdata(orig=True), line.get_ydata(orig=True))}


def scatter_points(collection, index):
    label, axes = collection.get_label(), collection.axes
    xs, ys = collection.get_offsets().T
    if is_date(axes.xaxis):
        from matplotlib.dates import num2date
        xs = [num2date(each) for each in xs]
    hidden = re.fullmatch(r"_child(\d+)", label)
    return {"label": f"Dataset {index}" if hidden else label, "points": pairs_of(xs, ys)}


def pie_part(wedge):
    return {"label": wedge.get_label(), "angle": number(abs(wedge.theta2 - wedge.theta1)),
            "radius": number(wedge.r)}


def bar_chart(axes):
    chart, elements, lies = planar(axes, "bar"), [], False
    for container in axes.containers:
        if not hasattr(container, "patches"):
            continue
        lies = getattr(container, "orientation", None) == "horizontal"
        group = container.get_label()
        hidden = re.fullmatch(r"_container(\d+)", group)
        for bar, name in zip(container.patches, bar_names(axes, container, lies)):
            elements.append({"label": name, "group": f"Group {hidden[1]}" if hidden else group,
                             "value": number(bar.get_width() if lies else bar.get_height())})
    chart = turned(chart) if lies else chart
    return {**chart, "elements": elements}


def bar_names(axes, container, lies):
    """Returns the label of the tick nearest to each bar, or the position of the bar."""
    letter = "y" if lies else "x"
    places, labels, _ = ticks(axes, letter)
    names = []
    for bar in container.patches:
        start, size = (bar.get_y(), bar.get_height()) if lies else (bar.get_x(), bar.get_width())
        near = [text for place, text in zip(places, labels)
                if isinstance(place, (int, float)) and start <= place <= start + size and text]
        names.append(near[0] if near else str(number(start + size / 2)))
    return names


# Box plots: matplotlib draws each as a box, two whiskers, two caps, a median and the outliers.


def is_box_plot(lines):
    return any(len(each.get_xdata()) == 5 and each.get_xdata()[0] == each.get_xdata()[-1] and
               each.get_ydata()[0] == each.get_ydata()[-1] for each in lines)


def corners(xs, ys):
    return [number(min(xs)), number(max(xs)), number(min(ys)), number(max(ys))]


def boxes_of_lines(lines):
    boxes = [each for each in lines if len(each.get_xdata()) == 5]
    rest = [each for each in lines if len(each.get_xdata()) != 5]
    return [corners(each.get_xdata(), each.get_ydata()) for each in boxes], rest


def boxes_of_patches(patches, lines):
    return [corners(*each.get_path().vertices[:-1].T) for each in patches], lines


def box_chart(axes, parts):
    boxes, lines = parts
    lies = bool(lines) and is_lying(boxes, lines)
    names = [each.get_text() for each in getattr(axes, "get_yticklabels" if lies else "get_xticklabels")()]
    chart = planar(axes, "box_and_whisker")
    elements = [box_part(box, lines, lies) for box in boxes]
    for i, element in enumerate(elements):
        element["label"] = names[i] if i < len(names) else str(i + 1)
    return {**(turned(chart) if lies else chart), "elements": elements}


def is_lying(boxes, lines):
    """Whether the whiskers, which begin at a side of a box, leave it to the left and right."""
    for line in lines:
        xs, ys = line.get_xdata(), line.get_ydata()
        for left, right, low, high in boxes:
            if len(xs) == 2 and number(ys[0]) == number(ys[1]) and low < ys[0] < high and \
                    (number(max(xs)) == left or number(min(xs)) == right):
                return True
    return False


def box_part(box, lines, lies):
    left, right, low, high = box
    if lies:
        left, right, low, high = low, high, left, right
    part = {"label": "", "min": low, "first_quartile": low, "median": low, "third_quartile": high,
            "max": high, "outliers": []}
    for line in lines:
        across, along = line.get_xdata(), line.get_ydata()
        if lies:
            across, along = along, across
        across, along = [number(each) for each in across], [number(each) for each in along]
        if not across or not left <= min(across) <= max(across) <= right:
            continue
        if line.get_linestyle() == "None":
            part["outliers"] += along
        elif len(along) == 2 and along[0] == along[1] and low <= along[0] <= high and \
                [min(across), max(across)] == [left, right]:
            part["median"] = along[0]
        elif len(along) == 2 and along[0] != along[1]:
            part["min"], part["max"] = min(part["min"], *along), max(part["max"], *along)
    return part
