from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ProtoRect(_message.Message):
    __slots__ = ("left", "top", "right", "bottom")
    LEFT_FIELD_NUMBER: _ClassVar[int]
    TOP_FIELD_NUMBER: _ClassVar[int]
    RIGHT_FIELD_NUMBER: _ClassVar[int]
    BOTTOM_FIELD_NUMBER: _ClassVar[int]
    left: int
    top: int
    right: int
    bottom: int
    def __init__(self, left: _Optional[int] = ..., top: _Optional[int] = ..., right: _Optional[int] = ..., bottom: _Optional[int] = ...) -> None: ...

class AndroidAccessibilityAction(_message.Message):
    __slots__ = ("id", "label")
    ID_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    id: int
    label: str
    def __init__(self, id: _Optional[int] = ..., label: _Optional[str] = ...) -> None: ...

class AndroidAccessibilityNodeInfoClickableSpan(_message.Message):
    __slots__ = ("text", "url", "source", "start", "node_id")
    class SpanSource(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        UNKNOWN_TYPE: _ClassVar[AndroidAccessibilityNodeInfoClickableSpan.SpanSource]
        TEXT: _ClassVar[AndroidAccessibilityNodeInfoClickableSpan.SpanSource]
        CONTENT_DESCRIPTION: _ClassVar[AndroidAccessibilityNodeInfoClickableSpan.SpanSource]
    UNKNOWN_TYPE: AndroidAccessibilityNodeInfoClickableSpan.SpanSource
    TEXT: AndroidAccessibilityNodeInfoClickableSpan.SpanSource
    CONTENT_DESCRIPTION: AndroidAccessibilityNodeInfoClickableSpan.SpanSource
    TEXT_FIELD_NUMBER: _ClassVar[int]
    URL_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    text: str
    url: str
    source: AndroidAccessibilityNodeInfoClickableSpan.SpanSource
    start: int
    node_id: int
    def __init__(self, text: _Optional[str] = ..., url: _Optional[str] = ..., source: _Optional[_Union[AndroidAccessibilityNodeInfoClickableSpan.SpanSource, str]] = ..., start: _Optional[int] = ..., node_id: _Optional[int] = ...) -> None: ...

class AndroidAccessibilityNodeInfo(_message.Message):
    __slots__ = ("unique_id", "bounds_in_screen", "class_name", "content_description", "hint_text", "package_name", "text", "text_selection_start", "text_selection_end", "view_id_resource_name", "window_id", "is_checkable", "is_checked", "is_clickable", "is_editable", "is_enabled", "is_focusable", "is_focused", "is_long_clickable", "is_password", "is_scrollable", "is_selected", "is_visible_to_user", "actions", "child_ids", "clickable_spans", "depth", "labeled_by_id", "label_for_id", "drawing_order", "tooltip_text")
    UNIQUE_ID_FIELD_NUMBER: _ClassVar[int]
    BOUNDS_IN_SCREEN_FIELD_NUMBER: _ClassVar[int]
    CLASS_NAME_FIELD_NUMBER: _ClassVar[int]
    CONTENT_DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    HINT_TEXT_FIELD_NUMBER: _ClassVar[int]
    PACKAGE_NAME_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    TEXT_SELECTION_START_FIELD_NUMBER: _ClassVar[int]
    TEXT_SELECTION_END_FIELD_NUMBER: _ClassVar[int]
    VIEW_ID_RESOURCE_NAME_FIELD_NUMBER: _ClassVar[int]
    WINDOW_ID_FIELD_NUMBER: _ClassVar[int]
    IS_CHECKABLE_FIELD_NUMBER: _ClassVar[int]
    IS_CHECKED_FIELD_NUMBER: _ClassVar[int]
    IS_CLICKABLE_FIELD_NUMBER: _ClassVar[int]
    IS_EDITABLE_FIELD_NUMBER: _ClassVar[int]
    IS_ENABLED_FIELD_NUMBER: _ClassVar[int]
    IS_FOCUSABLE_FIELD_NUMBER: _ClassVar[int]
    IS_FOCUSED_FIELD_NUMBER: _ClassVar[int]
    IS_LONG_CLICKABLE_FIELD_NUMBER: _ClassVar[int]
    IS_PASSWORD_FIELD_NUMBER: _ClassVar[int]
    IS_SCROLLABLE_FIELD_NUMBER: _ClassVar[int]
    IS_SELECTED_FIELD_NUMBER: _ClassVar[int]
    IS_VISIBLE_TO_USER_FIELD_NUMBER: _ClassVar[int]
    ACTIONS_FIELD_NUMBER: _ClassVar[int]
    CHILD_IDS_FIELD_NUMBER: _ClassVar[int]
    CLICKABLE_SPANS_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    LABELED_BY_ID_FIELD_NUMBER: _ClassVar[int]
    LABEL_FOR_ID_FIELD_NUMBER: _ClassVar[int]
    DRAWING_ORDER_FIELD_NUMBER: _ClassVar[int]
    TOOLTIP_TEXT_FIELD_NUMBER: _ClassVar[int]
    unique_id: int
    bounds_in_screen: ProtoRect
    class_name: str
    content_description: str
    hint_text: str
    package_name: str
    text: str
    text_selection_start: int
    text_selection_end: int
    view_id_resource_name: str
    window_id: int
    is_checkable: bool
    is_checked: bool
    is_clickable: bool
    is_editable: bool
    is_enabled: bool
    is_focusable: bool
    is_focused: bool
    is_long_clickable: bool
    is_password: bool
    is_scrollable: bool
    is_selected: bool
    is_visible_to_user: bool
    actions: _containers.RepeatedCompositeFieldContainer[AndroidAccessibilityAction]
    child_ids: _containers.RepeatedScalarFieldContainer[int]
    clickable_spans: _containers.RepeatedCompositeFieldContainer[AndroidAccessibilityNodeInfoClickableSpan]
    depth: int
    labeled_by_id: int
    label_for_id: int
    drawing_order: int
    tooltip_text: str
    def __init__(self, unique_id: _Optional[int] = ..., bounds_in_screen: _Optional[_Union[ProtoRect, _Mapping]] = ..., class_name: _Optional[str] = ..., content_description: _Optional[str] = ..., hint_text: _Optional[str] = ..., package_name: _Optional[str] = ..., text: _Optional[str] = ..., text_selection_start: _Optional[int] = ..., text_selection_end: _Optional[int] = ..., view_id_resource_name: _Optional[str] = ..., window_id: _Optional[int] = ..., is_checkable: _Optional[bool] = ..., is_checked: _Optional[bool] = ..., is_clickable: _Optional[bool] = ..., is_editable: _Optional[bool] = ..., is_enabled: _Optional[bool] = ..., is_focusable: _Optional[bool] = ..., is_focused: _Optional[bool] = ..., is_long_clickable: _Optional[bool] = ..., is_password: _Optional[bool] = ..., is_scrollable: _Optional[bool] = ..., is_selected: _Optional[bool] = ..., is_visible_to_user: _Optional[bool] = ..., actions: _Optional[_Iterable[_Union[AndroidAccessibilityAction, _Mapping]]] = ..., child_ids: _Optional[_Iterable[int]] = ..., clickable_spans: _Optional[_Iterable[_Union[AndroidAccessibilityNodeInfoClickableSpan, _Mapping]]] = ..., depth: _Optional[int] = ..., labeled_by_id: _Optional[int] = ..., label_for_id: _Optional[int] = ..., drawing_order: _Optional[int] = ..., tooltip_text: _Optional[str] = ...) -> None: ...

class AndroidAccessibilityTree(_message.Message):
    __slots__ = ("nodes",)
    NODES_FIELD_NUMBER: _ClassVar[int]
    nodes: _containers.RepeatedCompositeFieldContainer[AndroidAccessibilityNodeInfo]
    def __init__(self, nodes: _Optional[_Iterable[_Union[AndroidAccessibilityNodeInfo, _Mapping]]] = ...) -> None: ...

class AndroidAccessibilityWindowInfo(_message.Message):
    __slots__ = ("bounds_in_screen", "display_id", "id", "layer", "title", "window_type", "is_accessibility_focused", "is_active", "is_focused", "is_in_picture_in_picture_mode", "tree")
    class WindowType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        UNKNOWN_TYPE: _ClassVar[AndroidAccessibilityWindowInfo.WindowType]
        TYPE_APPLICATION: _ClassVar[AndroidAccessibilityWindowInfo.WindowType]
        TYPE_INPUT_METHOD: _ClassVar[AndroidAccessibilityWindowInfo.WindowType]
        TYPE_SYSTEM: _ClassVar[AndroidAccessibilityWindowInfo.WindowType]
        TYPE_ACCESSIBILITY_OVERLAY: _ClassVar[AndroidAccessibilityWindowInfo.WindowType]
        TYPE_SPLIT_SCREEN_DIVIDER: _ClassVar[AndroidAccessibilityWindowInfo.WindowType]
        TYPE_MAGNIFICATION_OVERLAY: _ClassVar[AndroidAccessibilityWindowInfo.WindowType]
        TYPE_WINDOW_CONTROL: _ClassVar[AndroidAccessibilityWindowInfo.WindowType]
    UNKNOWN_TYPE: AndroidAccessibilityWindowInfo.WindowType
    TYPE_APPLICATION: AndroidAccessibilityWindowInfo.WindowType
    TYPE_INPUT_METHOD: AndroidAccessibilityWindowInfo.WindowType
    TYPE_SYSTEM: AndroidAccessibilityWindowInfo.WindowType
    TYPE_ACCESSIBILITY_OVERLAY: AndroidAccessibilityWindowInfo.WindowType
    TYPE_SPLIT_SCREEN_DIVIDER: AndroidAccessibilityWindowInfo.WindowType
    TYPE_MAGNIFICATION_OVERLAY: AndroidAccessibilityWindowInfo.WindowType
    TYPE_WINDOW_CONTROL: AndroidAccessibilityWindowInfo.WindowType
    BOUNDS_IN_SCREEN_FIELD_NUMBER: _ClassVar[int]
    DISPLAY_ID_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    LAYER_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    WINDOW_TYPE_FIELD_NUMBER: _ClassVar[int]
    IS_ACCESSIBILITY_FOCUSED_FIELD_NUMBER: _ClassVar[int]
    IS_ACTIVE_FIELD_NUMBER: _ClassVar[int]
    IS_FOCUSED_FIELD_NUMBER: _ClassVar[int]
    IS_IN_PICTURE_IN_PICTURE_MODE_FIELD_NUMBER: _ClassVar[int]
    TREE_FIELD_NUMBER: _ClassVar[int]
    bounds_in_screen: ProtoRect
    display_id: int
    id: int
    layer: int
    title: str
    window_type: AndroidAccessibilityWindowInfo.WindowType
    is_accessibility_focused: bool
    is_active: bool
    is_focused: bool
    is_in_picture_in_picture_mode: bool
    tree: AndroidAccessibilityTree
    def __init__(self, bounds_in_screen: _Optional[_Union[ProtoRect, _Mapping]] = ..., display_id: _Optional[int] = ..., id: _Optional[int] = ..., layer: _Optional[int] = ..., title: _Optional[str] = ..., window_type: _Optional[_Union[AndroidAccessibilityWindowInfo.WindowType, str]] = ..., is_accessibility_focused: _Optional[bool] = ..., is_active: _Optional[bool] = ..., is_focused: _Optional[bool] = ..., is_in_picture_in_picture_mode: _Optional[bool] = ..., tree: _Optional[_Union[AndroidAccessibilityTree, _Mapping]] = ...) -> None: ...

class AndroidAccessibilityForest(_message.Message):
    __slots__ = ("windows",)
    WINDOWS_FIELD_NUMBER: _ClassVar[int]
    windows: _containers.RepeatedCompositeFieldContainer[AndroidAccessibilityWindowInfo]
    def __init__(self, windows: _Optional[_Iterable[_Union[AndroidAccessibilityWindowInfo, _Mapping]]] = ...) -> None: ...

class BytesList(_message.Message):
    __slots__ = ("value",)
    VALUE_FIELD_NUMBER: _ClassVar[int]
    value: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, value: _Optional[_Iterable[bytes]] = ...) -> None: ...

class FloatList(_message.Message):
    __slots__ = ("value",)
    VALUE_FIELD_NUMBER: _ClassVar[int]
    value: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, value: _Optional[_Iterable[float]] = ...) -> None: ...

class Int64List(_message.Message):
    __slots__ = ("value",)
    VALUE_FIELD_NUMBER: _ClassVar[int]
    value: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, value: _Optional[_Iterable[int]] = ...) -> None: ...

class Feature(_message.Message):
    __slots__ = ("bytes_list", "float_list", "int64_list")
    BYTES_LIST_FIELD_NUMBER: _ClassVar[int]
    FLOAT_LIST_FIELD_NUMBER: _ClassVar[int]
    INT64_LIST_FIELD_NUMBER: _ClassVar[int]
    bytes_list: BytesList
    float_list: FloatList
    int64_list: Int64List
    def __init__(self, bytes_list: _Optional[_Union[BytesList, _Mapping]] = ..., float_list: _Optional[_Union[FloatList, _Mapping]] = ..., int64_list: _Optional[_Union[Int64List, _Mapping]] = ...) -> None: ...

class Features(_message.Message):
    __slots__ = ("feature",)
    class FeatureEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: Feature
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[Feature, _Mapping]] = ...) -> None: ...
    FEATURE_FIELD_NUMBER: _ClassVar[int]
    feature: _containers.MessageMap[str, Feature]
    def __init__(self, feature: _Optional[_Mapping[str, Feature]] = ...) -> None: ...

class Example(_message.Message):
    __slots__ = ("features",)
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    features: Features
    def __init__(self, features: _Optional[_Union[Features, _Mapping]] = ...) -> None: ...
