import { count, plural } from '../formation/words.js';
import type { OfferedEntry, OfferedModels } from './catalogue-client.js';

/** Decimal, as disks and downloads are counted: 640 MB, 4.4 GB. */
export function bytesText(bytes: number): string {
  if (bytes < 1e6) return `${Math.ceil(bytes / 1e3)} kB`;
  if (bytes < 999.5e6) return `${Math.round(bytes / 1e6)} MB`;
  return `${(bytes / 1e9).toFixed(bytes < 99.5e9 ? 1 : 0)} GB`;
}

const STATES: Readonly<Record<OfferedEntry['state'], string>> = {
  loaded: 'Loaded',
  stored: 'Here',
  downloading: 'Downloading',
  partial: 'Partly here',
  absent: 'On the hub',
};

export const stateWords = ({ state }: OfferedEntry): string => STATES[state];

/** Size, room and speed of a model. */
export function factsOf({
  bytes,
  fits,
  tokens_per_second: rate,
  cached_tokens: tokens,
}: OfferedEntry): string[] {
  const facts = [
    bytes === null ? '' : bytesText(bytes),
    fits === true ? `fits, with ${count(tokens ?? 0)} tokens of context` : '',
    fits === false ? 'does not fit into the memory for models' : '',
    rate === null || fits === false ? '' : `up to ${rateText(rate)} tokens/s`,
  ];
  return facts.filter((fact) => fact !== '');
}

function rateText(rate: number): string {
  return rate < 10 ? rate.toFixed(1) : count(Math.round(rate));
}

/** How far a download is: 37 % of 1.3 GB, 24 MB/s, 36 s left. */
export function progressWords({
  bytes,
  done_bytes: done,
  bytes_per_second: rate,
  state,
}: OfferedEntry): string {
  if (bytes === null) return state === 'partial' ? `${bytesText(done ?? 0)} are here` : 'Asking the hub';
  const share = `${Math.floor((100 * (done ?? 0)) / bytes)} % of ${bytesText(bytes)}`;
  if (rate === null || rate === 0) return share;
  return `${share}, ${bytesText(rate)}/s, ${timeText((bytes - (done ?? 0)) / rate)} left`;
}

function timeText(seconds: number): string {
  if (seconds < 60) return `${Math.ceil(seconds)} s`;
  const minutes = Math.ceil(seconds / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** How many models there are, for the heading. */
export function summaryOf({ data, more }: OfferedModels): string {
  const here = data.filter(({ state }) => state === 'loaded' || state === 'stored').length;
  const coming = data.filter(({ state }) => state === 'downloading').length;
  const others = data.length - here - coming + more;
  const parts = [
    `${plural(here, 'model')} here`,
    coming === 0 ? '' : `${count(coming)} coming`,
    others === 0 ? '' : `${count(others)} to download`,
  ];
  return parts.filter((part) => part !== '').join(', ');
}

/** What the reader has to know of the hub; '': nothing. */
export function hubWords({ hub: { state, reason }, data }: OfferedModels): string {
  const isEmpty = data.length === 0;
  const here = isEmpty ? 'Nothing is here yet.' : 'Only what is here is listed.';
  if (state === 'asking') return 'Asking the hub for its models.';
  if (state === 'offline') return `${reason ?? 'The hub may not be asked.'} ${here}`;
  if (state === 'unreachable')
    return `The hub cannot be reached. ${here}${reason === null ? '' : ` ${reason}`}`;
  if (state === 'unknown') return `${here} What the hub has is asked when an admin looks.`;
  return isEmpty ? 'There are no models yet.' : '';
}

/** Where the numbers come from. */
export function groundsWords({ memory_bytes: memory, read_bytes_per_second: rate }: OfferedModels): string {
  const room = `Models have ${bytesText(memory)} of memory here.`;
  if (rate === null) return `${room} How fast memory is read is measured while no model computes.`;
  return `${room} It was read at ${bytesText(rate)}/s; divided by the bytes that a token reads, of experts those that it goes to, that is the most that one answer can have.`;
}
