import type { Formation, FormationRow } from '../../../../../callbacks/formation.js';
import { Lanes } from './lanes.js';
import { type Mark, Track } from './track.js';

/** Longest time that is kept behind a request's end. */
export const KEPT_MS = 65_000;
/** Requests that are kept at most; of more those that ended first are forgotten. */
export const MAX_TRACKS = 2000;
/** A server's clock that is set by more than this begins a new timeline. */
const CLOCK_JUMP_MS = 5_000;
/** How fast the estimate of the way from the server forgets its best one. */
const DRIFT = 0.001;

const MARKS: readonly Mark['kind'][] = ['chunk', 'pause', 'lastChunk'];

/**
 * The requests of one model over the latest minute, from formation events. Events may be missing, come twice or in
 * another order: what they say happened counts once, and what was missed is filled in from what is seen later.
 */
export class TimelineModel {
  readonly #tracks = new Map<number, Track>();
  readonly #lanes: Lanes;
  #latest: Formation | null = null;
  /** Between the server's clock and the client's, of the event that was fastest here. */
  #offsetMs = Number.POSITIVE_INFINITY;
  #receivedMs = 0;
  #version = 0;

  constructor(maxLanes: number) {
    this.#lanes = new Lanes(maxLanes);
  }

  /** Changes with everything that a picture shows. */
  get version(): number {
    return this.#version;
  }

  /** Tracks in the order in which they were first seen. */
  get tracks(): Iterable<Track> {
    return this.#tracks.values();
  }

  get latest(): Formation | null {
    return this.#latest;
  }

  /** Requests in flight that have no row, because there is none left. */
  get unplaced(): number {
    let count = 0;
    for (const { lane, end } of this.#tracks.values()) if (lane < 0 && end === null) count++;
    return count;
  }

  track(id: number): Track | undefined {
    return this.#tracks.get(id);
  }

  /** The server's time at a time of the client; 0 before the first event. */
  serverMs(clientMs: number): number {
    return this.#offsetMs === Number.POSITIVE_INFINITY ? 0 : clientMs - this.#offsetMs;
  }

  reset(): void {
    this.#tracks.clear();
    this.#latest = null;
    this.#offsetMs = Number.POSITIVE_INFINITY;
    this.#version++;
  }

  /** `receivedMs`: when it was, on the client's clock. */
  take(event: Formation, receivedMs: number): void {
    this.#follow(event.timeMs, receivedMs);
    const isNews = this.#latest === null || event.timeMs >= this.#latest.timeMs;
    if (isNews) {
      for (const track of this.#tracks.values()) track.row = -1;
      for (const [index, row] of event.requests.entries()) this.#see(event, row, index);
    }
    for (const step of event.steps) this.#takeStep(event.timeMs, step);
    if (isNews) this.#lookAgain(event);
    this.#takeEnds(event);
    if (isNews) {
      this.#endMissing(event);
      this.#latest = event;
    }
    this.#forget();
    this.#lanes.place(this.#tracks.values(), this.#latest!.timeMs);
    this.#version++;
  }

  /** The time between sending and receiving is never below the true one: the least seen is the best estimate. */
  #follow(timeMs: number, receivedMs: number): void {
    const offset = receivedMs - timeMs;
    if (offset < this.#offsetMs - CLOCK_JUMP_MS || offset > this.#offsetMs + CLOCK_JUMP_MS) {
      if (this.#offsetMs !== Number.POSITIVE_INFINITY) this.reset();
      this.#offsetMs = offset;
    } else {
      const drifted = this.#offsetMs + DRIFT * Math.max(0, receivedMs - this.#receivedMs);
      this.#offsetMs = Math.min(offset, drifted);
    }
    this.#receivedMs = receivedMs;
  }

  #see({ timeMs }: Formation, row: FormationRow, index: number): void {
    const [id, label, state, ageMs, ...counts] = row;
    const known = this.#tracks.get(id);
    const track = known ?? this.#add(new Track(id, label, timeMs - ageMs));
    // What was taken for gone is there.
    if (track.end?.reason === 'gone') track.end = null;
    if (track.end !== null) return;
    track.row = index;
    track.wasListed = true;
    track.state = state;
    const [promptTokens = 0, contextTokens = 0, contextDone = 0, generated = 0, maxNewTokens = 0] = counts;
    const [blocks = 0, cachedTokens = 0, pauses = 0, , firstTokenMs = -1] = counts.slice(5);
    const lengths = { promptTokens, contextTokens, contextDone, generated, maxNewTokens };
    track.numbers = { ...lengths, blocks, cachedTokens, pauses, firstTokenMs };
  }

  /** Where what was told does not lead to what is seen, something was missed. */
  #lookAgain({ timeMs, requests }: Formation): void {
    for (const row of requests) {
      const track = this.#tracks.get(row[0]);
      if (track === undefined || track.end !== null) continue;
      track.see(row[2], timeMs, { scheduledMs: row[12] ?? -1, firstTokenMs: row[13] ?? -1 });
    }
  }

  #takeStep(timeMs: number, [id, kind, begin, end, , tokens]: Formation['steps'][number]): void {
    const track = this.#tracks.get(id) ?? this.#add(new Track(id, '', timeMs + begin));
    track.add({ kind: MARKS[kind] ?? 'chunk', beginMs: timeMs + begin, endMs: timeMs + end, tokens });
  }

  #takeEnds({ timeMs, ended }: Formation): void {
    for (const [id, label, reason, end, ageMs, promptTokens, generated, cachedTokens] of ended) {
      const ms = timeMs + end;
      const track = this.#tracks.get(id) ?? this.#add(new Track(id, label, ms - ageMs));
      track.beginMs = Math.min(track.beginMs, ms - ageMs);
      track.end = { ms: Math.max(ms, track.beginMs), reason };
      track.row = -1;
      track.numbers = { ...track.numbers, promptTokens, generated, cachedTokens, blocks: 0 };
      if (track.numbers.firstTokenMs < 0) track.numbers.firstTokenMs = firstTokenOf(track);
    }
  }

  /** Who is not listed has ended, unless not all that wait are listed. */
  #endMissing({ timeMs, requests, queued }: Formation): void {
    const isCut = requests.filter((row) => row[2] === 0).length < queued;
    for (const track of this.#tracks.values()) {
      if (track.end !== null || track.row >= 0 || (isCut && track.state === 0)) continue;
      const ms = track.wasListed ? timeMs : track.lastMarkMs;
      track.end = { ms: Math.max(ms, track.beginMs), reason: 'gone' };
    }
  }

  #add(track: Track): Track {
    this.#tracks.set(track.id, track);
    return track;
  }

  #forget(): void {
    const { timeMs } = this.#latest ?? { timeMs: 0 };
    for (const [id, track] of this.#tracks) {
      if (track.end !== null && track.end.ms < timeMs - KEPT_MS) this.#tracks.delete(id);
      else track.forgetBefore(timeMs - KEPT_MS);
    }
    for (const [id, { end }] of this.#tracks) {
      if (this.#tracks.size <= MAX_TRACKS) break;
      if (end !== null) this.#tracks.delete(id);
    }
  }
}

/** When its first context was done. */
function firstTokenOf({ beginMs, segments }: Track): number {
  const generating = segments.find(({ kind }) => kind === 'generating');
  return generating === undefined ? -1 : Math.round(generating.beginMs - beginMs);
}
