// What the scripts of the drawings are given, and pass to each other.

/** The one argument of a component's default function, as Streamlit's second API defines it. */
interface StreamlitComponent {
    data: Uint8Array;
    parentElement: HTMLElement | ShadowRoot;
    setStateValue(name: string, value: unknown): void;
    setTriggerValue(name: string, value: unknown): void;
}

/** In an offline page: a function for each script that returns what the script exports. */
declare const FACTORIES: (() => (component: OfflineComponent) => (() => void) | undefined)[];

/** What such a page hands to a component. */
type OfflineComponent = Omit<StreamlitComponent, "data"> & {
    data: unknown;
    key: string;
    name: string;
};

/** What a drawing is drawn with: on the page or in a PNG a canvas, in an SVG its elements. */
type Pen = CanvasRenderingContext2D | SvgContext;

/** A picture to save: its size in CSS pixels, and an element that knows the theme. */
interface Picture {
    width: number;
    height: number;
    /** `ratio`: the device pixels of a CSS pixel; 1 in an SVG. */
    draw(context: Pen, ratio: number): void;
    name: string;
    element: Element;
}

interface Window {
    /** The arrangements of mosaics by their keys, also of those that are not drawn yet. */
    attentionLabArrangements?: Map<string, object>;
}

/** What may be set on an SvgContext, as on a canvas's own context; a setter keeps each. */
interface SvgContext {
    fillStyle: string;
    strokeStyle: string;
    lineWidth: number;
    globalAlpha: number;
    lineCap: CanvasLineCap;
    lineJoin: CanvasLineJoin;
    font: string;
    textAlign: CanvasTextAlign;
    textBaseline: CanvasTextBaseline;
    imageSmoothingEnabled: boolean;
}
