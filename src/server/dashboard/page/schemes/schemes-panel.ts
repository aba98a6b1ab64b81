import { el, say } from '../dom.js';
import { legend } from '../formation/legend.js';
import { count, milliseconds } from '../formation/words.js';
import type { MountPanel } from '../panels.js';
import { type Recordings, type SchemeRecording, tokensAt, totalsOf } from './recording.js';
import recorded from './recordings.json' with { type: 'json' };
import { Player, SchemeView } from './schemes-view.js';

const RECORDINGS = recorded as unknown as Recordings;

const SAYS: Record<SchemeRecording['modelType'], string> = {
  V1: 'a batch waits for its longest: who is done keeps an empty slot',
  InflightBatching: 'requests join and leave; prompts and tokens in two calls',
  InflightFusedBatching: 'the same, fused into one call',
};

const LEGEND: readonly [mark: string, text: string][] = [
  ['queued', 'waits'],
  ['context', 'context'],
  ['generating', 'generating'],
  ['empty', 'empty slot'],
  ['done', 'answered'],
];

/** Panel that plays the same work under the three batching schemes side by side. */
export const mountSchemes: MountPanel = (root) => {
  const { schemes } = RECORDINGS;
  const totals = schemes.map(totalsOf);
  const totalMs = Math.max(...totals.map(({ wallMs }) => wallMs));
  const body = el('div', { class: 'schemes-body' });
  const shows = el(
    'button',
    { class: 'switch', type: 'button', role: 'switch', 'aria-checked': 'true' },
    ['Side by side'],
    {
      click: () => {
        body.hidden = !body.hidden;
        shows.setAttribute('aria-checked', String(!body.hidden));
      },
    },
  );
  const play = el('button', { class: 'button', type: 'button' }, ['Play'], { click: () => player.toggle() });
  const time = el(
    'input',
    { type: 'range', class: 'schemes-time', min: 0, max: Math.ceil(totalMs), step: 10, 'aria-label': 'Time' },
    [],
    {
      input: () => player.seek(Number(time.value)),
    },
  );
  const clock = el('span', { class: 'schemes-clock' });
  const rows = schemes.map((recording) => new SchemeRow(recording, totalMs));
  const player = new Player(totalMs, (ms, isPlaying) => {
    for (const row of rows) row.show(ms);
    play.textContent = isPlaying ? 'Pause' : 'Play';
    time.value = String(Math.round(ms));
    const text = `${(ms / 1000).toFixed(1)} s`;
    clock.textContent = text;
    time.setAttribute('aria-valuetext', text);
  });
  body.append(
    el('div', { class: 'schemes-tools' }, [play, time, clock, legend(LEGEND)]),
    ...rows.map(({ element }) => element),
    totalsTable(RECORDINGS),
    el('p', { class: 'schemes-source' }, [sourceOf(RECORDINGS)]),
  );
  root.append(
    el('div', { class: 'live-head' }, [
      el('div', {}, [
        el('h2', { class: 'panel-title' }, ['Three ways to batch the same work']),
        el('p', { class: 'panel-lead' }, [leadOf(RECORDINGS)]),
      ]),
      shows,
    ]),
    body,
  );
  root.hidden = false;
  player.seek(totalMs);
};

class SchemeRow {
  readonly element: HTMLElement;
  readonly #recording: SchemeRecording;
  readonly #view: SchemeView;
  readonly #tokens = el('span', { class: 'scheme-tokens' });

  constructor(recording: SchemeRecording, totalMs: number) {
    this.#recording = recording;
    const { wallMs, emptyShare } = totalsOf(recording);
    const said = `${recording.modelType}: ${SAYS[recording.modelType]}. All answered after ${milliseconds(wallMs)}, ${percent(emptyShare)} of the slots empty.`;
    const canvas = el('canvas', { class: 'scheme-canvas', role: 'img', 'aria-label': said });
    this.element = el('div', { class: 'scheme' }, [
      el('div', { class: 'scheme-head' }, [
        el('h3', {}, [recording.modelType]),
        el('span', { class: 'scheme-says' }, [SAYS[recording.modelType]]),
        this.#tokens,
      ]),
      canvas,
    ]);
    this.#view = new SchemeView(canvas, recording, totalMs);
  }

  show(ms: number): void {
    this.#view.show(ms);
    const text = `${count(tokensAt(this.#recording, ms))} tokens`;
    say(this.#tokens, text);
  }
}

function totalsTable({ schemes }: Recordings): HTMLElement {
  const head = [
    'Scheme',
    'Tokens/s',
    'All answered after',
    'Mean time to first token',
    'Mean time to the answer',
    'Empty slots',
  ];
  const rows = schemes.map((recording) => {
    const { tokensPerSecond, wallMs, meanFirstTokenMs, meanLatencyMs, emptyShare } = totalsOf(recording);
    const cells = [
      count(Math.round(tokensPerSecond)),
      milliseconds(wallMs),
      milliseconds(meanFirstTokenMs),
      milliseconds(meanLatencyMs),
      percent(emptyShare),
    ];
    return el('tr', {}, [
      el('th', { scope: 'row' }, [recording.modelType]),
      ...cells.map((text) => el('td', { class: 'number' }, [text])),
    ]);
  });
  return el(
    'div',
    { class: 'table-scroll', tabindex: 0, role: 'group', 'aria-label': 'Totals of the schemes' },
    [
      el('table', {}, [
        el('thead', {}, [
          el(
            'tr',
            {},
            head.map((name) => el('th', { scope: 'col' }, [name])),
          ),
        ]),
        el('tbody', {}, rows),
      ]),
    ],
  );
}

function leadOf({ schemes, maxNumSequences }: Recordings): string {
  const { requests } = schemes[0]!;
  return `${requests.length} requests of different lengths, arriving one after the other, at most ${maxNumSequences} at once. A row is a request, the same in all three.`;
}

function sourceOf({ model, weights, machine, instructionSet, threads, schemes }: Recordings): string {
  const prompts = schemes[0]!.requests.map(({ promptTokens }) => promptTokens);
  const news = schemes[0]!.requests.map(({ newTokens }) => newTokens);
  const range = (values: readonly number[]) => `${Math.min(...values)} to ${Math.max(...values)}`;
  return (
    `Recordings of real runs of this engine, not of this server: a model of ${model}'s shape in ${weights}, ${threads} threads of ` +
    `${machine} (${instructionSet}), prompts of ${range(prompts)} tokens, ${range(news)} generated. V1's contexts are padded to the longest of their batch.`
  );
}

function percent(share: number): string {
  return `${Math.round(100 * share)} %`;
}
