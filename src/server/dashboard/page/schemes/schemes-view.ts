import { Picture, palette, prefersStill, Redraw } from '../formation/picture.js';
import { drawSegment, hatch, TIMELINE_COLOURS, type TimelineColours } from '../formation/timeline-marks.js';
import { type RecordedRequest, type SchemeRecording, segmentsOf } from './recording.js';

const EDGE = 10;

/** View of one recording up to a time: a row for each request, in order of arrival. */
export class SchemeView {
  readonly #requests: readonly RecordedRequest[];
  readonly #totalMs: number;
  readonly #picture: Picture;
  readonly #colours: () => Readonly<TimelineColours>;
  readonly #redraw = new Redraw(() => this.#draw());
  #ms = 0;

  /** @param totalMs time that the width stands for: the same for all views that play together. */
  constructor(canvas: HTMLCanvasElement, { requests }: SchemeRecording, totalMs: number) {
    this.#requests = requests;
    this.#totalMs = totalMs;
    this.#ms = totalMs;
    this.#picture = new Picture(canvas, () => this.#redraw.ask());
    this.#colours = palette(TIMELINE_COLOURS, () => this.#redraw.ask());
  }

  show(ms: number): void {
    if (ms === this.#ms) return;
    this.#ms = ms;
    this.#redraw.ask();
  }

  #draw(): boolean {
    const { context, width, height } = this.#picture;
    const colours = this.#colours();
    const scale = (width - EDGE) / this.#totalMs;
    const pitch = height / this.#requests.length;
    const thick = Math.max(2, pitch - (pitch > 8 ? 3 : 1.5));
    context.clearRect(0, 0, width, height);
    for (const [row, request] of this.#requests.entries()) {
      const top = row * pitch + (pitch - thick) / 2;
      for (const { kind, beginMs, endMs } of segmentsOf(request)) {
        if (beginMs >= this.#ms) continue;
        const left = beginMs * scale;
        const right = Math.min(endMs, this.#ms) * scale;
        if (kind === 'empty') this.#drawEmpty(colours, left, right, top, thick);
        else drawSegment(context, kind, colours, left, right, top, thick);
      }
      if (request.endMs > this.#ms) continue;
      context.fillStyle = colours.done;
      context.beginPath();
      context.arc(request.endMs * scale + 4, top + thick / 2, Math.min(3, thick * 0.45), 0, 2 * Math.PI);
      context.fill();
    }
    if (this.#ms < this.#totalMs) this.#drawHead(colours, this.#ms * scale, height);
    return false;
  }

  /** Draws a slot that computes for no request. */
  #drawEmpty(colours: TimelineColours, left: number, right: number, top: number, thick: number): void {
    const { context } = this.#picture;
    context.globalAlpha = 0.8;
    context.fillStyle = colours.failed;
    context.fillRect(left, top, right - left, thick);
    context.globalAlpha = 1;
    if (right - left > 3) hatch(context, colours.surface, left, top, right - left, thick);
  }

  #drawHead(colours: TimelineColours, x: number, height: number): void {
    const { context } = this.#picture;
    context.strokeStyle = colours['ink-faint'];
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(Math.round(x) + 0.5, 0);
    context.lineTo(Math.round(x) + 0.5, height);
    context.stroke();
  }
}

/** Plays a stretch of time from beginning to end; where motion is not wanted it moves by seconds. */
export class Player {
  readonly #totalMs: number;
  readonly #onChange: (ms: number, isPlaying: boolean) => void;
  #ms: number;
  #isPlaying = false;
  #beforeMs = 0;
  #shownMs = -1;

  constructor(totalMs: number, onChange: (ms: number, isPlaying: boolean) => void) {
    this.#totalMs = totalMs;
    this.#onChange = onChange;
    this.#ms = totalMs;
  }

  toggle(): void {
    if (this.#isPlaying) this.#isPlaying = false;
    else {
      if (this.#ms >= this.#totalMs) this.#ms = 0;
      this.#isPlaying = true;
      this.#beforeMs = performance.now();
      requestAnimationFrame(() => this.#step());
    }
    this.#onChange(this.#ms, this.#isPlaying);
  }

  seek(ms: number): void {
    this.#isPlaying = false;
    this.#ms = ms;
    this.#onChange(ms, false);
  }

  #step(): void {
    if (!this.#isPlaying) return;
    const nowMs = performance.now();
    this.#ms = Math.min(this.#totalMs, this.#ms + nowMs - this.#beforeMs);
    this.#beforeMs = nowMs;
    this.#isPlaying = this.#ms < this.#totalMs;
    const isDue = !prefersStill() || !this.#isPlaying || Math.abs(this.#ms - this.#shownMs) >= 1000;
    if (isDue) {
      this.#shownMs = this.#ms;
      this.#onChange(this.#ms, this.#isPlaying);
    }
    if (this.#isPlaying) requestAnimationFrame(() => this.#step());
  }
}
