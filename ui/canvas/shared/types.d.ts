// What the scripts of the drawings are given, and pass to each other.

/** The one argument of a component's default function, as Streamlit's second API defines it. */
interface StreamlitComponent {
    data: Uint8Array;
    parentElement: HTMLElement | ShadowRoot;
    setStateValue(name: string, value: unknown): void;
    setTriggerValue(name: string, value: unknown): void;
}

/** In a walk as one file: what the script of the picture exports, its elements and its styles. */
declare const exported: (component: StreamlitComponent) => unknown;
declare const PICTURE_HTML: string;
declare const PICTURE_CSS: string;

/** What a drawing is drawn with: on the page or in a PNG a canvas, in an SVG its elements. */
type Pen = CanvasRenderingContext2D | SvgContext;

/** A drawing to save: its size in CSS pixels, and an element that knows the theme. */
interface Drawing {
    width: number;
    height: number;
    /** `ratio`: the device pixels of a CSS pixel; 1 in an SVG. */
    draw(context: Pen, ratio: number): void;
    element: Element;
}

/** One with everything around it, and the name of its file. */
type Framed = Drawing & { name: string };

/** What the pictures of a page are about, as ui/canvas/component.py adds it to their data. */
interface About {
    /** The model's title, and its short name. */
    model?: string;
    name?: string;
    sentence?: string;
}

/** A scale of colours; `tone` from 0 to 1. Without a tone only the text is shown. */
interface Scale {
    tone?: (share: number) => string;
    low?: string;
    middle?: string;
    high?: string;
    text: string;
}

/** A drawing, and what is said around it once it is saved. */
interface Picture extends Drawing {
    title: string;
    /** What a row and a column are. */
    says: string;
    about?: About;
    notes?: string[];
    scales?: Scale[];
    words?: string[];
    /** What its numbers are ("weights"), and what its file is called if not by its title. */
    kind?: string;
    name?: string;
}

interface Window {
    /** The arrangements of mosaics by their keys, also of those that are not drawn yet. */
    attentionLabArrangements?: Map<string, object>;
    /** What is opened in pictures of one pass, by their names. */
    attentionLabOpened?: Map<string, any>;
    /** The visitor has just walked into a picture of one pass that another page shows. */
    attentionLabWalksIn?: boolean;
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
