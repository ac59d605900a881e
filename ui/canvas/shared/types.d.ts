// Types that the canvas scripts receive and exchange.

/** The argument of a component's default function, as defined by Streamlit's components API v2. */
interface StreamlitComponent {
    data: Uint8Array;
    parentElement: HTMLElement | ShadowRoot;
    setStateValue(name: string, value: unknown): void;
    setTriggerValue(name: string, value: unknown): void;
}

/** In an offline copy: the default export of the picture's script, its HTML and its CSS. */
declare const exported: (component: StreamlitComponent) => unknown;
declare const PICTURE_HTML: string;
declare const PICTURE_CSS: string;

/** A drawing context: a canvas context on the page and for PNG files, or an SvgContext. */
type Pen = CanvasRenderingContext2D | SvgContext;

/** A drawing to save: its size in CSS pixels, and an element with the theme's styles. */
interface Drawing {
    width: number;
    height: number;
    /** `ratio`: device pixels per CSS pixel; 1 in an SVG. */
    draw(context: Pen, ratio: number): void;
    element: Element;
}

/** A drawing with title and legend, and its file name. */
type Framed = Drawing & { name: string };

/** Facts about the page that ui/canvas/component.py adds to the data. */
interface About {
    /** The model's title and its short name. */
    model?: string;
    name?: string;
    sentence?: string;
}

/** A color scale; `tone` maps 0 to 1 to colors. Without it, only the text is shown. */
interface Scale {
    tone?: (share: number) => string;
    low?: string;
    middle?: string;
    high?: string;
    text: string;
}

/** A drawing and the text around it in a saved picture. */
interface Picture extends Drawing {
    title: string;
    /** An explanation, such as what rows and columns are. */
    says: string;
    about?: About;
    notes?: string[];
    scales?: Scale[];
    words?: string[];
    /** What its numbers are ("weights"), and the file name if it isn't the title. */
    kind?: string;
    name?: string;
}

interface Window {
    /** Arrangements of mosaics by key, including mosaics that aren't drawn yet. */
    attentionLabArrangements?: Map<string, object>;
    /** The opened layer and head of each one-pass picture, by the picture's name. */
    attentionLabOpened?: Map<string, any>;
    /** Whether the visitor has just opened a one-pass picture from another page. */
    attentionLabWalksIn?: boolean;
}

/** The settable properties of an SvgContext; they're the same as on a canvas context. */
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
