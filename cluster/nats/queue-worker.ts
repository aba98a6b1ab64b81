import { messageOf } from '../../base/error-text.js';
import { textOf } from '../../base/skein-error.js';
import type { PieceSource } from '../../callbacks/piece-source.js';
import { failure, messageOfFailure, type RequestFailure } from '../../callbacks/request-failure.js';
import {
  HostClosedError,
  QueueFullError,
  type TokenPiece,
  type TokenRequest,
} from '../../callbacks/token-request.js';
import { FrameSender, type Lane } from './frame-sender.js';
import { GatewayHolds } from './gateway-holds.js';
import type { HandOvers } from './hand-overs.js';
import type { StopMessage, WorkItem } from './messages.js';
import { numSequencesOf } from './request-wire.js';
import type { ObserveWork, WorkEnd, WorkObserver } from './work-observer.js';
import { WorkPictures, type WorkSight } from './work-pictures.js';
import { failureFor, lanesOf, requestOf, type WorkAdapters } from './work-request.js';
import { type Delivery, roomFor, type WorkerPort } from './worker-port.js';

/** The engine of a worker: an InProcessHost. */
export interface WorkEngine {
  submitSeveral(request: TokenRequest): PieceSource<TokenPiece>[];
  /** Requests that have not run yet, or are paused. */
  readonly waiting: number;
}

export interface QueueWorkerOptions extends WorkAdapters {
  id: string;
  port: WorkerPort;
  engine: WorkEngine;
  /** Most requests that it has at once. */
  places: number;
  /** Milliseconds of a gateway's silence after which its requests are taken as abandoned. */
  gatewayGraceMs: number;
  /** null: the engine's blocks cannot be had. */
  handOvers: HandOvers | null;
  /** null: the model takes no pictures. */
  sight: WorkSight | null;
  /** Called when there is room again, if a gateway was refused for lack of room. */
  onRoom?: () => void;
  /** Follows the work for requests; absent: the work is not observed. */
  observe?: ObserveWork;
  onWarning: (message: string) => void;
}

const NO_ROOM = failure('ended', 'The worker has no room for the request any more.');

/** A request that the worker has. */
interface Held {
  item: WorkItem;
  delivery: Delivery;
  /** The gateway has confirmed that it waits for it from here, and the stream has been notified. */
  isConfirmed: boolean;
  /** None while blocks of its prompt are on their way here. */
  sources: readonly PieceSource<TokenPiece>[];
  lanes: Lane[];
  hasPiece: boolean;
  /** null: this attempt is not observed. */
  observer: WorkObserver | null;
}

/**
 * The worker's end of the work queue: it takes as many requests as it has room for, runs them, and sends what comes of
 * them to their gateways.
 *
 *   pull -> request -> engine -> pieces -> frames, one message for each gateway and iteration
 *              |  ^
 *              |  '-- offer: a gateway has chosen this worker
 *              |          of a prefill: its blocks, kept until they are fetched
 *              '- hold: "I have these" --> gateway: fine --> ack: the stream forgets it
 *                                                   stale -> dropped, and ack
 *                                          no answer --> dropped, after a while
 *
 * A worker decides nothing: whether an attempt counts is the gateway's to say.
 */
export class QueueWorker {
  readonly #options: QueueWorkerOptions;
  readonly #sender: FrameSender;
  readonly #pictures: WorkPictures;
  readonly #held = new Map<string, Held>();
  readonly #holds: GatewayHolds<Held>;
  /** Requests that were asked for and have not come. */
  #asked = 0;
  #isLeaving = false;
  #isScheduled = false;
  /** A gateway was refused because there is no room. */
  #hasRefused = false;
  #onEmpty: (() => void) | null = null;

  constructor(options: QueueWorkerOptions) {
    this.#options = options;
    const { id, port, sight } = options;
    this.#pictures = new WorkPictures(sight, port);
    this.#sender = new FrameSender(id, port, (frameId, attempt, why) => this.#fail(frameId, attempt, why));
    this.#holds = new GatewayHolds(options, {
      all: () => this.#held.values(),
      has: (held) => this.#isHeld(held),
      flush: () => this.#sender.flush(),
      confirm: (held) => {
        held.isConfirmed = true;
        held.delivery.ack();
      },
      drop: (held) => this.#drop(held),
    });
  }

  /** Number of requests that it has. */
  get size(): number {
    return this.#held.size;
  }

  get isLeaving(): boolean {
    return this.#isLeaving;
  }

  /** Looks for room, and asks for as many requests as there is room for. */
  wake(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    // Many requests begin and end in one turn; one look is enough.
    setImmediate(() => {
      this.#isScheduled = false;
      this.#pull();
    });
  }

  #pull(): void {
    if (this.#isLeaving) return;
    const { port, onRoom } = this.#options;
    if (this.#hasRefused && this.#room > 0) {
      this.#hasRefused = false;
      onRoom?.();
    }
    const room = this.#room - this.#asked;
    if (room <= 0) return;
    this.#asked += room;
    void port.pull(room).then((numMissing) => {
      this.#asked -= numMissing;
      this.wake();
    });
  }

  get #room(): number {
    const { places, engine } = this.#options;
    return roomFor({ places, held: this.#held.size, waiting: engine.waiting });
  }

  /**
   * A gateway has chosen this worker for a request. False: there is no room for it. Requests that were asked for and have not come do not
   * count: they may never come.
   */
  offer(item: WorkItem): boolean {
    const before = this.#held.get(item.id);
    if (before !== undefined && before.item.attempt >= item.attempt)
      return before.item.attempt === item.attempt;
    if (this.#isLeaving || this.#room <= 0) {
      this.#hasRefused = true;
      return false;
    }
    if (before !== undefined) this.#drop(before);
    let isTaken: boolean | null = null;
    const giveBack = () => {
      // Its gateway does not know yet that it is here, or offers it again.
      if (isTaken === null) isTaken = false;
      else this.#sender.fail(item.gateway, { id: item.id, attempt: item.attempt, failure: NO_ROOM });
    };
    this.#begin({ item, isRedelivered: false, ack: () => {}, giveBack });
    isTaken ??= true;
    return isTaken;
  }

  /** A request has come out of the stream. */
  onWork(delivery: Delivery): void {
    this.#asked--;
    const { item } = delivery;
    const before = this.#held.get(item.id);
    if (before !== undefined && before.item.attempt >= item.attempt) {
      // It has come twice, since it was not acknowledged in time, or an old one comes late.
      if (before.item.attempt === item.attempt && !before.isConfirmed) before.delivery = delivery;
      else delivery.ack();
      return;
    }
    if (this.#isLeaving) {
      delivery.giveBack();
      return;
    }
    // Others that came meanwhile have taken its place. It goes round once at most, so that some worker has it
    // in the end.
    if (before === undefined && this.#held.size >= this.#options.places && !delivery.isRedelivered) {
      delivery.giveBack();
      return;
    }
    if (before !== undefined) this.#drop(before);
    this.#begin(delivery);
    this.wake();
  }

  #begin(delivery: Delivery): void {
    const { item } = delivery;
    let request: TokenRequest;
    try {
      request = requestOf(item, this.#options);
    } catch (error) {
      this.#refuse(delivery, error);
      return;
    }
    const held: Held = {
      item,
      delivery,
      isConfirmed: false,
      sources: [],
      lanes: lanesOf(item, numSequencesOf(request)),
      hasPiece: false,
      observer: this.#options.observe?.(item, request) ?? null,
    };
    this.#held.set(item.id, held);
    this.#holds.note(item.gateway);
    if (item.handOver === undefined && item.pictures === undefined) this.#start(held, request);
    else void this.#bring(held, request);
    if (this.#isHeld(held)) void this.#holds.tell(item.gateway);
  }

  /** Starts a request when what it needs of others has come. */
  async #bring(held: Held, request: TokenRequest): Promise<void> {
    const { item } = held;
    const isWanted = () => this.#isHeld(held);
    const { handOvers } = this.#options;
    try {
      const [whole] = await Promise.all([
        hasPictures(item) ? this.#pictures.bring(item, request, isWanted) : request,
        item.handOver && handOvers?.bring(item, request, isWanted),
      ]);
      if (!isWanted()) return;
      if (item.handOver && handOvers) held.observer?.onBlocks();
      this.#start(held, whole);
    } catch (error) {
      if (isWanted()) this.#refuseHeld(held, error);
    }
  }

  #start(held: Held, request: TokenRequest): void {
    const { item, lanes } = held;
    held.observer?.onSubmit();
    try {
      held.sources = this.#options.engine.submitSeveral(request);
    } catch (error) {
      this.#refuseHeld(held, error);
      return;
    }
    for (const [sequence, source] of held.sources.entries()) {
      const lane = lanes[sequence]!;
      if (lane.isEnded) {
        source.leave(true);
        continue;
      }
      source.listen({
        onPiece: (piece) =>
          item.isPrefill ? this.#onPrefill(held, request, piece) : this.#onPiece(held, lane, piece),
        onError: (error) => this.#onError(held, error),
      });
    }
    // Nothing of it is wanted any more: no piece comes that would end it.
    if (this.#isHeld(held) && lanes.every(({ isEnded }) => isEnded)) this.#forget(held, 'answered');
  }

  /** The engine does not take the request: others may, or it is at fault itself. */
  #refuse(delivery: Delivery, error: unknown): void {
    if (error instanceof QueueFullError || error instanceof HostClosedError) {
      delivery.giveBack();
      return;
    }
    const { gateway, id, attempt } = delivery.item;
    this.#sender.fail(gateway, { id, attempt, failure: failureFor(error) });
    delivery.ack();
  }

  #refuseHeld(held: Held, error: unknown): void {
    const { item, delivery, isConfirmed } = held;
    if (!isConfirmed) {
      this.#held.delete(item.id);
      held.observer?.onEnd('failed', messageOf(error));
      this.#refuse(delivery, error);
      return;
    }
    // The stream has forgotten it: its gateway offers it again.
    const isFull = error instanceof QueueFullError || error instanceof HostClosedError;
    this.#fail(item.id, item.attempt, isFull ? failure('ended', textOf(error)) : failureFor(error));
  }

  #isHeld(held: Held): boolean {
    return this.#held.get(held.item.id) === held;
  }

  #onPiece(held: Held, lane: Lane, piece: TokenPiece): void {
    if (lane.isEnded || !this.#isHeld(held)) return;
    const { id, attempt } = held.item;
    if (piece.finishReason === 'cancelled') {
      // No gateway has asked for that: the engine is being closed.
      this.#fail(id, attempt, failure('ended', 'The worker was closed.'));
      return;
    }
    held.observer?.onPiece(piece);
    this.#sender.send(lane, piece);
    // A piece that is too long for a message has failed the request.
    if (!this.#isHeld(held)) return;
    if (!held.hasPiece) {
      held.hasPiece = true;
      // The engine may have room for the next.
      this.wake();
    }
    if (piece.finishReason === null) return;
    this.#endLane(held, lane);
  }

  #endLane(held: Held, lane: Lane): void {
    lane.isEnded = true;
    if (held.lanes.every(({ isEnded }) => isEnded)) this.#forget(held, 'answered');
  }

  /** The token after the prompt is drawn by the worker that answers. */
  #onPrefill(held: Held, request: TokenRequest, piece: TokenPiece): void {
    if (!this.#isHeld(held)) return;
    held.observer?.onPiece(piece);
    const { finishReason, cachedTokens = 0 } = piece;
    if (finishReason === null) return;
    const { id, attempt, gateway } = held.item;
    if (finishReason === 'cancelled') {
      this.#fail(id, attempt, failure('ended', 'The worker was closed.'));
      return;
    }
    const nothing = Promise.resolve({ bytes: 0, numBlocks: 0 });
    const kept = this.#options.handOvers?.keep(held.item, request) ?? nothing;
    void kept.then((has) => {
      if (!this.#isHeld(held)) {
        this.#options.handOvers?.release(id);
        return;
      }
      this.#sender.prefilled(gateway, { id, attempt, cachedTokens, ...has });
      this.#forget(held, 'prefilled');
    });
  }

  #onError(held: Held, error: unknown): void {
    if (!this.#isHeld(held)) return;
    this.#fail(held.item.id, held.item.attempt, failureFor(error));
  }

  /** Ends an attempt with a failure, which is reported to its gateway. */
  #fail(id: string, attempt: number, why: RequestFailure): void {
    const held = this.#held.get(id);
    if (held === undefined || held.item.attempt !== attempt) return;
    this.#sender.fail(held.item.gateway, { id, attempt, failure: why });
    this.#leave(held, 'failed', messageOfFailure(why));
  }

  /** Ends the work for a request that no gateway waits for here any more. */
  #drop(held: Held): void {
    this.#leave(held, 'dropped');
  }

  #leave(held: Held, end: WorkEnd, reason?: string): void {
    this.#forget(held, end, reason);
    for (const source of held.sources) source.leave();
  }

  #forget(held: Held, end: WorkEnd, reason?: string): void {
    this.#held.delete(held.item.id);
    held.observer?.onEnd(end, reason);
    // Its frames are on their way, or are not wanted.
    if (!held.isConfirmed) held.delivery.ack();
    this.wake();
    if (this.#held.size === 0) this.#onEmpty?.();
  }

  /** A gateway wants no more of a request, or of one of its sequences. */
  stop({ id, attempt, sequence }: StopMessage): void {
    const held = this.#held.get(id);
    if (held === undefined) this.#options.handOvers?.release(id);
    if (held === undefined || held.item.attempt > attempt) return;
    if (sequence === null) {
      this.#drop(held);
      return;
    }
    const lane = held.lanes[sequence];
    if (lane === undefined) return;
    held.sources[sequence]?.leave(true);
    this.#endLane(held, lane);
  }

  /** Reports to every gateway which of its requests the worker has. To be called again and again. */
  holdAll(): void {
    this.#options.handOvers?.expire();
    this.#holds.tellAll();
  }

  /** Takes no more requests. Those that it has continue here until their gateways have moved them. */
  leave(): void {
    this.#isLeaving = true;
    this.#options.port.stopPulling();
  }

  /** Resolves when it has no requests. */
  async whenEmpty(): Promise<void> {
    if (this.#held.size === 0) return;
    await new Promise<void>((resolve) => {
      this.#onEmpty = resolve;
    });
  }

  /** Gives up what it still has, and notifies its gateways. */
  close(): void {
    this.leave();
    for (const { item } of [...this.#held.values()]) {
      this.#fail(item.id, item.attempt, failure('ended', 'The worker was closed.'));
    }
    this.#sender.flush();
  }
}

const hasPictures = (item: WorkItem): item is WorkItem & Required<Pick<WorkItem, 'pictures'>> =>
  item.pictures !== undefined;
