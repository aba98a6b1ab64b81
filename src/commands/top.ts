import { serverAddress } from '../asking/server-address.js';
import { UsageError } from '../errors/user-errors.js';
import { readerGone } from '../terminal/standard-output.js';
import { type FeedOptions, watchFeed } from '../top/feed-client.js';
import { frame } from '../top/frame.js';
import { ModelFollower } from '../top/model-picture.js';
import { type Key, Screen } from '../top/screen.js';
import { clientKey } from './asking-command.js';
import { listenForInterruption } from './interruption.js';

export interface TopFlags {
  model?: string;
  apiKey?: string;
  once?: boolean;
  json?: boolean;
}

/** Milliseconds that --once listens: rates need two events. */
const ONCE_MS = 1_000;
/** Least milliseconds between two frames; the most are REDRAW_MS. */
const FRAME_MS = 100;
const REDRAW_MS = 1_000;
const ONCE_COLUMNS = 120;

/** Runs skein top URL. @throws UsageError, AskingError; InterruptedError after a signal. */
export async function top(url: string, flags: TopFlags): Promise<void> {
  const address = serverAddress(url, 'The address');
  const feed = { address, apiKey: clientKey(flags.apiKey), model: flags.model };
  if (!flags.once && !flags.json && !process.stdout.isTTY) {
    throw new UsageError(
      'skein top draws on a terminal, and stdout is none; --once or --json is for a pipe.',
    );
  }
  const interruption = listenForInterruption();
  try {
    if (flags.once) await showOnce(feed, flags, interruption.signal);
    else if (flags.json) await showLines(feed, interruption.signal);
    else await show(feed, interruption.signal);
    interruption.signal.throwIfAborted();
  } finally {
    interruption.release();
  }
}

/** Models of a server, in the order in which their events first came. */
class Models {
  readonly followers = new Map<string, ModelFollower>();

  of(data: Record<string, unknown>): ModelFollower {
    const name = typeof data.model === 'string' ? data.model : '';
    const known = this.followers.get(name);
    if (known !== undefined) return known;
    const follower = new ModelFollower(name);
    this.followers.set(name, follower);
    return follower;
  }

  interrupt(): void {
    for (const follower of this.followers.values()) follower.interrupt();
  }
}

/** Listens for a moment, and prints a picture of each model. */
async function showOnce(feed: FeedOptions, { json }: TopFlags, signal: AbortSignal): Promise<void> {
  const models = new Models();
  const end = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  for await (const event of watchFeed(feed, AbortSignal.any([signal, end.signal]))) {
    if (event.kind === 'lost') throw new Error(`The server went away: ${event.problem}`);
    if (event.kind === 'stats') models.of(event.data).noteStats(event.data);
    else models.of(event.data).noteFormation(event.data);
    timer ??= setTimeout(() => end.abort(), ONCE_MS);
  }
  clearTimeout(timer);
  if (signal.aborted) return;
  const pictures = [...models.followers.values()].map((follower) => follower.picture());
  if (json) {
    process.stdout.write(`${JSON.stringify(pictures.length === 1 ? pictures[0] : pictures)}\n`);
    return;
  }
  for (const [index, picture] of pictures.entries()) {
    const lines = frame(picture, {
      address: feed.address,
      columns: process.stdout.columns || ONCE_COLUMNS,
      rows: Number.POSITIVE_INFINITY,
      offset: 0,
      problem: null,
      place: { index, count: pictures.length },
      keys: '',
    });
    process.stdout.write(`${lines.map(({ text }) => text).join('\n')}\n`);
  }
}

/** Prints a line of JSON for each event with requests in flight. */
async function showLines(feed: FeedOptions, signal: AbortSignal): Promise<void> {
  const models = new Models();
  for await (const event of watchFeed(feed, AbortSignal.any([signal, readerGone()]))) {
    if (event.kind === 'lost') {
      models.interrupt();
      process.stderr.write(`skein: ${event.problem} Trying again.\n`);
      continue;
    }
    const follower = models.of(event.data);
    if (event.kind === 'stats') follower.noteStats(event.data);
    else {
      follower.noteFormation(event.data);
      process.stdout.write(`${JSON.stringify(follower.picture())}\n`);
    }
  }
}

async function show(feed: FeedOptions, signal: AbortSignal): Promise<void> {
  const leave = new AbortController();
  const models = new Models();
  const screen = new Screen(process.stdin, process.stdout);
  let problem: string | null = null;
  let [index, offset] = [0, 0];
  let timer: NodeJS.Timeout | null = null;
  const draw = () => {
    const all = [...models.followers.values()];
    const { columns, rows } = screen.size;
    const picture = all[index % Math.max(1, all.length)]?.picture();
    if (picture === undefined) return;
    offset = Math.max(0, Math.min(offset, picture.requests.length - 1));
    screen.draw(
      frame(picture, {
        ...{ address: feed.address, columns, rows, offset, problem },
        place: { index: index % all.length, count: all.length },
        keys: `q leaves, arrows scroll${all.length > 1 ? ', Tab shows the next model' : ''}`,
      }),
    );
  };
  /** Redraws soon, once for all events that come until then. */
  const redraw = () => {
    timer ??= setTimeout(() => {
      timer = null;
      draw();
    }, FRAME_MS);
  };
  const onKey = ({ name, ctrl }: Key) => {
    if (name === 'q' || (ctrl && name === 'c')) leave.abort();
    const page = Math.max(1, screen.size.rows - 8);
    const steps: Record<string, number> = { up: -1, k: -1, down: 1, j: 1, pageup: -page, pagedown: page };
    offset = Math.max(0, offset + (steps[name ?? ''] ?? 0));
    if (name === 'tab') index++;
    redraw();
  };
  const clock = setInterval(redraw, REDRAW_MS);
  let isOpen = false;
  try {
    for await (const event of watchFeed(feed, AbortSignal.any([signal, leave.signal, readerGone()]))) {
      // The screen opens once the server has answered: an error before that is shown on the normal screen.
      if (!isOpen) screen.open(onKey, redraw);
      isOpen = true;
      problem = event.kind === 'lost' ? event.problem : null;
      if (event.kind === 'lost') models.interrupt();
      else if (event.kind === 'stats') models.of(event.data).noteStats(event.data);
      else models.of(event.data).noteFormation(event.data);
      redraw();
    }
  } finally {
    clearInterval(clock);
    if (timer !== null) clearTimeout(timer);
    screen.close();
    process.stdin.destroy();
  }
}
