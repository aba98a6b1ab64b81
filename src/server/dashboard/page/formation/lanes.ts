import type { Track } from './track.js';

/** Between the end of a request and the beginning of the next one in its row. */
const GAP_MS = 150;

/** Gives each request the first row that is free from when it came, and lets it keep that. */
export class Lanes {
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  /** Where no row was free from when one came, it is shown from when one becomes free. */
  place(tracks: Iterable<Track>, nowMs: number): void {
    /** The time until which each row is taken. */
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
    // One that has ended meanwhile has nothing more to show.
    return freed >= 0 && endOf(track) > until[freed]! + GAP_MS ? freed : -1;
  }
}

function endOf({ end }: Track): number {
  return end?.ms ?? Number.POSITIVE_INFINITY;
}
