import type { Palette } from './picture.js';
import type { SegmentKind } from './track.js';

export const TIMELINE_COLOURS = [
  'queued',
  'context',
  'generating',
  'paused',
  'resumed',
  'done',
  'failed',
  'surface',
  'line',
  'ink',
  'ink-soft',
  'ink-faint',
] as const;

export type TimelineColours = Palette<(typeof TIMELINE_COLOURS)[number]>;

/**
 * Draws a state of a request, told by form as well as by colour:
 *
 *   queued       an outline          between     a thin line (its context waits for its next chunk)
 *   context      blocks with gaps    generating  a solid bar
 *   paused       a dashed line       resuming    hatched blocks
 */
export function drawSegment(
  context: CanvasRenderingContext2D,
  kind: SegmentKind,
  colours: TimelineColours,
  left: number,
  right: number,
  top: number,
  thick: number,
): void {
  const width = right - left;
  const middle = top + thick / 2;
  if (kind === 'generating') {
    context.fillStyle = colours.generating;
    context.fillRect(left, top, width, thick);
  } else if (kind === 'context' || kind === 'resuming') {
    const colour = kind === 'context' ? colours.context : colours.resumed;
    context.fillStyle = colour;
    const drawn = Math.max(1.5, width - 1);
    context.fillRect(left, top, drawn, thick);
    if (kind === 'resuming' && drawn > 3) hatch(context, colours.surface, left, top, drawn, thick);
  } else if (kind === 'queued') {
    context.strokeStyle = colours.queued;
    context.lineWidth = 1;
    const inset = thick > 5 ? 1.5 : 0.5;
    if (width > 2) context.strokeRect(left + 0.5, top + inset, width - 1, thick - 2 * inset);
    else context.fillRect(left, middle, width, 1);
  } else {
    context.strokeStyle = kind === 'paused' ? colours.paused : colours.context;
    context.lineWidth = kind === 'paused' ? 2 : 1.5;
    context.setLineDash(kind === 'paused' ? [4, 3] : []);
    context.beginPath();
    context.moveTo(left, middle);
    context.lineTo(right, middle);
    context.stroke();
    context.setLineDash([]);
  }
}

/** Slanting lines over a bar. */
export function hatch(
  context: CanvasRenderingContext2D,
  colour: string,
  left: number,
  top: number,
  width: number,
  thick: number,
): void {
  context.save();
  context.beginPath();
  context.rect(left, top, width, thick);
  context.clip();
  context.strokeStyle = colour;
  context.lineWidth = 1;
  context.beginPath();
  const first = Math.floor((left - thick) / 4) * 4;
  for (let x = first; x < left + width; x += 4) {
    context.moveTo(x, top + thick);
    context.lineTo(x + thick, top);
  }
  context.stroke();
  context.restore();
}

/** Draws the end of a bar in flight: a point, like a goose. */
export function drawHead(
  context: CanvasRenderingContext2D,
  doing: SegmentKind,
  colours: TimelineColours,
  x: number,
  middle: number,
  thick: number,
): void {
  if (doing === 'queued' || doing === 'paused') return;
  const half = thick / 2;
  context.fillStyle = doing === 'generating' ? colours.generating : colours.context;
  if (doing === 'resuming') context.fillStyle = colours.resumed;
  context.beginPath();
  context.moveTo(x, middle - half);
  context.lineTo(x + Math.min(9, thick * 0.8), middle);
  context.lineTo(x, middle + half);
  context.fill();
}

/**
 * Draws the end of a request: a dot (completed), a cross (cancelled, out of time), a triangle (failed), a ring (not
 * known).
 */
export function drawEnd(
  context: CanvasRenderingContext2D,
  reason: string,
  colours: TimelineColours,
  x: number,
  middle: number,
  thick: number,
): void {
  const size = Math.min(5, Math.max(2.2, thick * 0.36));
  const at = x + size + 1;
  context.beginPath();
  if (reason === 'cancelled' || reason === 'timeout') {
    context.strokeStyle = colours['ink-soft'];
    context.lineWidth = 1.6;
    context.moveTo(at - size, middle - size);
    context.lineTo(at + size, middle + size);
    context.moveTo(at + size, middle - size);
    context.lineTo(at - size, middle + size);
    context.stroke();
  } else if (reason === 'error') {
    context.fillStyle = colours.failed;
    context.moveTo(at - size * 1.2, middle + size);
    context.lineTo(at, middle - size * 1.2);
    context.lineTo(at + size * 1.2, middle + size);
    context.fill();
  } else {
    context.arc(at, middle, size * 0.8, 0, 2 * Math.PI);
    context.lineWidth = 1.2;
    context.fillStyle = colours.done;
    context.strokeStyle = colours['ink-faint'];
    if (reason === 'gone') context.stroke();
    else context.fill();
  }
}
