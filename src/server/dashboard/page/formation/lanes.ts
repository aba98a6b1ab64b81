import type { Track } from './track.js';

/** Gap in a row between the end of a request and the next one, in milliseconds. */
const GAP_MS = 150;

/** Gives each request the first row that is free from its arrival on, for as long as it is shown. */
export class Lanes {
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  /** Places requests in rows. A request that found no free row is shown from the time that one becomes free. */
  place(tracks: Iterable<Track>, nowMs: number): void {
    /** Time until which each row is taken. */
    const until: number[] = [];
    const waiting: Track[] = [];
    for (const track of tracks) {
      if (track.lane < 0) waiting.push(track);
      else {
        while (until.length <= track.lane) until.push(Number.NEGATIVE_INFINITY);
        until[track.lane] = Math.max(until[track.lane]!, endOf(track));
      }
    }
    waiting.sort((left, right) => left.beginMs - right.beginMs || left.id - right.id);
    for (const track of waiting) {
      const lane = this.#laneFor(track, until, nowMs);
      if (lane < 0) continue;
      track.lane = lane;
      track.shownFromMs = Math.max(track.beginMs, (until[lane] ?? Number.NEGATIVE_INFINITY) + GAP_MS);
      until[lane] = endOf(track);
    }
  }

  #laneFor(track: Track, until: readonly number[], nowMs: number): number {
    const free = until.findIndex((ms) => ms + GAP_MS <= track.beginMs);
    if (free >= 0) return free;
    if (until.length < this.#max) return until.length;
    const freed = until.findIndex((ms) => ms + GAP_MS <= nowMs);
    // A request that has ended meanwhile has nothing left to show.
    return freed >= 0 && endOf(track) > until[freed]! + GAP_MS ? freed : -1;
  }
}

function endOf({ end }: Track): number {
  return end?.ms ?? Number.POSITIVE_INFINITY;
}
