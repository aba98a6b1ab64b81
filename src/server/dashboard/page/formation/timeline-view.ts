import { Picture, palette, prefersStill, Redraw } from './picture.js';
import type { Selection } from './selection.js';
import { drawEnd, drawHead, drawSegment, TIMELINE_COLOURS, type TimelineColours } from './timeline-marks.js';
import type { TimelineModel } from './timeline-model.js';
import type { Track } from './track.js';

/** Milliseconds by which the picture lags, so that events up to its edge have arrived. */
export const PLAYOUT_MS = 400;
const AXIS_HEIGHT = 22;
const EDGE = 14;
const MIN_PITCH = 4;
const MAX_PITCH = 22;
/** Least milliseconds between two pictures where motion is not wanted. */
const STILL_MS = 1000;

/** View of requests as bars over time, with the present at the right. */
export class TimelineView {
  readonly #model: TimelineModel;
  readonly #selection: Selection;
  readonly #picture: Picture;
  readonly #colours: () => Readonly<TimelineColours>;
  readonly #redraw: Redraw;
  #windowMs = 10_000;
  #pitch = MAX_PITCH;
  #drawnMs = 0;
  /** Version of the model that was drawn; -1: something else has changed. */
  #shownVersion = -1;
  #isEasing = false;
  #wasBusy = false;

  constructor(canvas: HTMLCanvasElement, model: TimelineModel, selection: Selection) {
    this.#model = model;
    this.#selection = selection;
    this.#redraw = new Redraw((nowMs) => this.#step(nowMs));
    this.#picture = new Picture(canvas, () => this.changed());
    this.#colours = palette(TIMELINE_COLOURS, () => this.changed());
    selection.onChange(() => this.changed());
    canvas.addEventListener('pointermove', (event) => selection.point(this.#at(event)));
    canvas.addEventListener('pointerleave', () => selection.point(null));
    canvas.addEventListener('pointerdown', (event) => {
      if (event.pointerType === 'touch') selection.point(this.#at(event));
    });
  }

  set windowMs(ms: number) {
    this.#windowMs = ms;
    this.changed();
  }

  get windowMs(): number {
    return this.#windowMs;
  }

  /** Draws soon: something other than the model has changed. */
  changed(): void {
    this.#shownVersion = -1;
    this.#redraw.ask();
  }

  /** Notes that the model has changed. */
  modelChanged(): void {
    this.#redraw.ask();
  }

  get nowMs(): number {
    return this.#model.serverMs(performance.now()) - PLAYOUT_MS;
  }

  /** Draws where it is time. Returns true where time itself moves the picture. */
  #step(nowMs: number): boolean {
    const isNew = this.#shownVersion !== this.#model.version;
    const moves = this.isBusy;
    const sinceMs = nowMs - this.#drawnMs;
    const isDue = prefersStill() ? sinceMs >= STILL_MS : this.#hasMoved(sinceMs) || this.#isEasing;
    // A change of something else, such as the size or the theme, asks for a picture too; and the last bar has to leave
    // it.
    const isAsked = this.#shownVersion < 0 || (this.#wasBusy && !moves);
    if (!isDue && !isAsked && (!isNew || prefersStill())) return moves;
    this.#drawnMs = nowMs;
    this.#shownVersion = this.#model.version;
    this.#wasBusy = moves;
    this.#isEasing = this.#draw();
    return moves || this.#isEasing;
  }

  /** True where the picture has moved visibly. */
  #hasMoved(sinceMs: number): boolean {
    return (sinceMs * (this.#picture.width - EDGE)) / this.#windowMs >= 0.5;
  }

  /** True where a bar is in the picture. */
  get isBusy(): boolean {
    const fromMs = this.nowMs - this.#windowMs;
    for (const { lane, end } of this.#model.tracks) {
      if (lane >= 0 && (end === null || end.ms > fromMs)) return true;
    }
    return false;
  }

  #draw(): boolean {
    const { context, width, height } = this.#picture;
    const colours = this.#colours();
    const nowMs = this.nowMs;
    const fromMs = nowMs - this.#windowMs;
    const isEasing = this.#easePitch(fromMs);
    context.clearRect(0, 0, width, height);
    this.#drawAxis(colours);
    const scale = (width - EDGE) / this.#windowMs;
    const chosen = this.#selection.id;
    for (const track of this.#model.tracks) {
      const endMs = track.end?.ms ?? nowMs;
      if (track.lane < 0 || endMs < fromMs || track.shownFromMs > nowMs) continue;
      context.globalAlpha = chosen === null || chosen === track.id ? 1 : 0.3;
      this.#drawTrack(track, colours, fromMs, nowMs, scale);
    }
    context.globalAlpha = 1;
    return isEasing;
  }

  #drawTrack(track: Track, colours: TimelineColours, fromMs: number, nowMs: number, scale: number): void {
    const { context } = this.#picture;
    const pitch = this.#pitch;
    const thick = Math.max(3, pitch - (pitch > 12 ? 6 : pitch > 8 ? 3 : 2));
    const top = track.lane * pitch + (pitch - thick) / 2;
    const x = (ms: number) => (ms - fromMs) * scale;
    for (const { kind, beginMs, endMs } of track.segments) {
      const begin = Math.max(beginMs, track.shownFromMs, fromMs - 1000);
      const end = Math.min(endMs, nowMs);
      if (end > begin && end >= fromMs) drawSegment(context, kind, colours, x(begin), x(end), top, thick);
    }
    const middle = top + thick / 2;
    if (track.end === null || track.end.ms > nowMs) {
      drawHead(context, track.doing, colours, x(nowMs), middle, thick);
    } else drawEnd(context, track.end.reason, colours, x(track.end.ms), middle, thick);
  }

  #drawAxis(colours: TimelineColours): void {
    const { context, width, height } = this.#picture;
    const stepMs = this.#windowMs <= 10_000 ? 1000 : this.#windowMs <= 30_000 ? 5000 : 10_000;
    const scale = (width - EDGE) / this.#windowMs;
    const bottom = height - AXIS_HEIGHT;
    context.font = `11px ${FONT}`;
    context.textBaseline = 'middle';
    context.lineWidth = 1;
    for (let agoMs = 0; agoMs <= this.#windowMs; agoMs += stepMs) {
      const at = Math.round(width - EDGE - agoMs * scale) + 0.5;
      context.strokeStyle = colours.line;
      context.beginPath();
      context.moveTo(at, 0);
      context.lineTo(at, bottom);
      context.stroke();
      if (agoMs % (2 * stepMs) !== 0 && width < 600) continue;
      context.fillStyle = colours['ink-faint'];
      context.textAlign = agoMs === 0 ? 'right' : agoMs === this.#windowMs ? 'left' : 'center';
      const text = agoMs === 0 ? 'now' : `−${agoMs / 1000} s`;
      context.fillText(text, agoMs === 0 ? width - 2 : Math.max(1, at), height - AXIS_HEIGHT / 2 + 1);
    }
  }

  /** Lets rows grow and shrink slowly with their number. */
  #easePitch(fromMs: number): boolean {
    let lanes = 1;
    for (const { lane, end } of this.#model.tracks) {
      if (end === null || end.ms > fromMs) lanes = Math.max(lanes, lane + 1);
    }
    const room = this.#picture.height - AXIS_HEIGHT;
    const wanted = Math.min(MAX_PITCH, Math.max(MIN_PITCH, room / lanes));
    const gap = wanted - this.#pitch;
    if (prefersStill() || Math.abs(gap) < 0.05) this.#pitch = wanted;
    else this.#pitch += gap * 0.12;
    return this.#pitch !== wanted;
  }

  /** Id of the request under the pointer; null: none. */
  #at(event: PointerEvent): number | null {
    const nowMs = this.nowMs;
    const lane = Math.floor(event.offsetY / this.#pitch);
    const scale = (this.#picture.width - EDGE) / this.#windowMs;
    const ms = nowMs - this.#windowMs + event.offsetX / scale;
    const slackMs = 6 / scale;
    let best: number | null = null;
    let bestGap = slackMs;
    for (const track of this.#model.tracks) {
      if (track.lane !== lane || track.shownFromMs > nowMs) continue;
      const gap = Math.max(track.shownFromMs - ms, ms - (track.end?.ms ?? nowMs), 0);
      if (gap > bestGap) continue;
      bestGap = gap;
      best = track.id;
    }
    return best;
  }
}

const FONT = getComputedStyle(document.documentElement).fontFamily;
