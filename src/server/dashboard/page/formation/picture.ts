import { onThemeChange, tokenColour } from '../theme.js';

/** Draws at most once a frame, and only when asked to. */
export class Redraw {
  readonly #draw: (nowMs: number) => boolean;
  #frame = 0;

  /** @param draw returns true where it must be called again in the next frame */
  constructor(draw: (nowMs: number) => boolean) {
    this.#draw = draw;
  }

  ask(): void {
    if (this.#frame === 0) this.#frame = requestAnimationFrame((nowMs) => this.#run(nowMs));
  }

  #run(nowMs: number): void {
    this.#frame = 0;
    if (this.#draw(nowMs)) this.ask();
  }
}

/** A canvas of the size of its box, in CSS pixels whatever the screen's pixels are. */
export class Picture {
  readonly canvas: HTMLCanvasElement;
  readonly context: CanvasRenderingContext2D;
  width = 0;
  height = 0;

  /** @param onResize called after each change of the box */
  constructor(canvas: HTMLCanvasElement, onResize: () => void) {
    this.canvas = canvas;
    this.context = canvas.getContext('2d', { alpha: true })!;
    const resize = () => {
      const { clientWidth, clientHeight } = canvas;
      const ratio = window.devicePixelRatio || 1;
      const width = Math.round(clientWidth * ratio);
      const height = Math.round(clientHeight * ratio);
      if (canvas.width === width && canvas.height === height) return;
      canvas.width = width;
      canvas.height = height;
      this.width = clientWidth;
      this.height = clientHeight;
      this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
      onResize();
    };
    new ResizeObserver(resize).observe(canvas);
    resize();
  }
}

export type Palette<Name extends string> = Record<Name, string>;

/** Colours of design tokens for a canvas, read again when the theme changes. */
export function palette<Name extends string>(
  names: readonly Name[],
  onChange: () => void,
): () => Readonly<Palette<Name>> {
  const read = () =>
    Object.fromEntries(names.map((name) => [name, tokenColour(`--${name}`)])) as Palette<Name>;
  let colours = read();
  onThemeChange(() => {
    colours = read();
    onChange();
  });
  return () => colours;
}

const motion = matchMedia('(prefers-reduced-motion: reduce)');

export function prefersStill(): boolean {
  return motion.matches;
}
