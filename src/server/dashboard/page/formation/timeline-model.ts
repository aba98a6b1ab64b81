import type { Formation, FormationRow } from '../../../../../callbacks/formation.js';
import { type Mark, Track } from './track.js';

/** Milliseconds for which a request is kept after its end. */
const KEPT_MS = 65_000;
/** Most requests kept; beyond it those that ended first are forgotten. */
const MAX_TRACKS = 2000;
/** Change of the server's clock, in milliseconds, above which a new timeline begins. */
const CLOCK_JUMP_MS = 5_000;
/** Rate at which the estimated delay from the server forgets its best value. */
const DRIFT = 0.001;

const MARKS: readonly Mark['kind'][] = ['chunk', 'pause', 'lastChunk'];

/**
 * Requests of one model over the latest minute, from formation events. Events may be missing, come twice or in another
 * order: each thing that they tell counts once, and missed ones are filled in from later events.
 */
export class TimelineModel {
  readonly #tracks = new Map<number, Track>();
  readonly #lanes: Lanes;
  #latest: Formation | null = null;
  /** Difference of the client's and the server's clocks, by the event with the least delay. */
  #offsetMs = Number.POSITIVE_INFINITY;
  #receivedMs = 0;
  #version = 0;

  constructor(maxLanes: number) {
    this.#lanes = new Lanes(maxLanes);
  }

  /** Number that changes with everything that a picture shows. */
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

  /** Number of requests in flight without a row, since none is left. */
  get unplaced(): number {
    let count = 0;
    for (const { lane, end } of this.#tracks.values()) if (lane < 0 && end === null) count++;
    return count;
  }

  track(id: number): Track | undefined {
    return this.#tracks.get(id);
  }

  /** Server's time at a time of the client; 0 before the first event. */
  serverMs(clientMs: number): number {
    return this.#offsetMs === Number.POSITIVE_INFINITY ? 0 : clientMs - this.#offsetMs;
  }

  reset(): void {
    this.#tracks.clear();
    this.#latest = null;
    this.#offsetMs = Number.POSITIVE_INFINITY;
    this.#version++;
  }

  /** @param receivedMs time of arrival on the client's clock */
  take(event: Formation, receivedMs: number): void {
    this.#follow(event.timeMs, receivedMs);
    const isNews = this.#latest === null || event.timeMs >= this.#latest.timeMs;
    if (isNews) {
      for (const track of this.#tracks.values()) track.row = -1;
      for (const [index, row] of event.requests.entries()) this.#see(event, row, index);
      for (const [id, name] of event.adapters ?? []) {
        const track = this.#tracks.get(id);
        if (track !== undefined) track.adapter = name;
      }
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

  /**
   * Follows the clocks: the time between sending and receiving is never less than the true difference, so the least
   * seen is the best estimate.
   */
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
    // A request taken for gone is there again.
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

  /** Fills in missed events, where those told do not lead to the state that is seen. */
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

  /** Ends requests that are no longer listed, unless the list of waiting ones is cut. */
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

/** Milliseconds from arrival to the first token, when the first context was done; -1: not yet. */
function firstTokenOf({ beginMs, segments }: Track): number {
  const generating = segments.find(({ kind }) => kind === 'generating');
  return generating === undefined ? -1 : Math.round(generating.beginMs - beginMs);
}

/** Gap in a row between the end of a request and the next one, in milliseconds. */
const GAP_MS = 150;

/** Gives each request the first row that is free from its arrival on, for as long as it is shown. */
class Lanes {
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
