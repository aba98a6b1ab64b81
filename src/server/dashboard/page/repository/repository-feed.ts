import type { ModelsEvent } from '../../../feeds/models-event.js';
import { Emitter } from '../emitter.js';
import { type FeedOptions, type FeedState, LiveStream } from '../live-stream.js';
import type { Session } from '../session.js';

interface RepositoryEvents {
  models: ModelsEvent;
  state: FeedState;
  /** Emitted for a new connection: counts may have started from zero. */
  reset: undefined;
}

/** Live events of all models of the server, from GET /stats/models/stream, at most twice a second. */
export class RepositoryFeed extends Emitter<RepositoryEvents> {
  readonly #stream: LiveStream;
  #isOpen = false;

  constructor(session: Session, options: Partial<FeedOptions> = {}) {
    super();
    this.#stream = new LiveStream(session, options);
    this.#stream.on('begin', () => this.emit('reset', undefined));
    this.#stream.on('state', (state) => this.emit('state', state));
    this.#stream.on('event', ({ name, data }) => {
      if (name === 'models') this.emit('models', JSON.parse(data) as ModelsEvent);
    });
  }

  get state(): FeedState {
    return this.#stream.state;
  }

  /** Begins to read, once: only where the server has let the page in, so that one panel alone asks for a key. */
  open(): void {
    if (this.#isOpen) return;
    this.#isOpen = true;
    this.#stream.open('stats/models/stream');
  }
}
