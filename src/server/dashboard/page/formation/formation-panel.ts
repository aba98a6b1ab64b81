import { el } from '../dom.js';
import type { FormationEvent } from '../feed.js';
import type { MountPanel } from '../panels.js';
import { BlockView } from './block-view.js';
import { BurstControls } from './burst-controls.js';
import { legend } from './legend.js';
import { RequestDetails } from './request-details.js';
import { RequestList } from './request-list.js';
import { RequestTable } from './request-table.js';
import { Selection } from './selection.js';
import { TimelineModel } from './timeline-model.js';
import { PLAYOUT_MS, TimelineView } from './timeline-view.js';
import { count, plural } from './words.js';

/** Most rows of the timeline, with which the picture grows. */
const MAX_ROWS = 72;
const WINDOWS_S = [10, 30, 60];
const USUAL_WINDOW_S = 10;
/** Least milliseconds between two changes of the words. */
const WORDS_MS = 500;

/** Panel with a timeline of requests in flight, and the KV blocks that they hold. */
export const mountFormation: MountPanel = (root, { feed, session }) => {
  const model = new TimelineModel(MAX_ROWS);
  const selection = new Selection();
  const canvas = el('canvas', { class: 'timeline-canvas', 'aria-hidden': 'true' });
  const blocks = el('canvas', { class: 'blocks-canvas', 'aria-hidden': 'true' });
  const list = new RequestList(canvas, model, selection);
  const details = new RequestDetails(model, selection);
  const table = new RequestTable(model);
  const burst = new BurstControls(session, feed);
  const blockText = el('p', { class: 'blocks-text' });
  const stateText = el('p', { class: 'states-text' });
  const whole = wholeSwitch((isWhole) => {
    blockView.isWhole = isWhole;
    say();
  });
  const empty = el('div', { class: 'timeline-empty' }, [
    el('p', {}, ['Nothing in flight.']),
    burst.sendButton('button'),
  ]);
  const windows = windowSwitch((seconds) => {
    timeline.windowMs = 1000 * seconds;
  });
  root.append(
    head(burst.element),
    el('div', { class: 'timeline' }, [list.element, empty]),
    legend(ENTRIES),
    el('div', { class: 'timeline-foot' }, [details.element, windows]),
    el('div', { class: 'blocks-head' }, [el('h3', { class: 'panel-title' }, ['KV cache']), blockText, whole]),
    el('div', { class: 'blocks' }, [blocks]),
    stateText,
    table.element,
  );
  root.hidden = false;
  const timeline = new TimelineView(canvas, model, selection);
  const blockView = new BlockView(blocks, model, selection);

  let saidMs = Number.NEGATIVE_INFINITY;
  let later: ReturnType<typeof setTimeout> | null = null;
  const say = () => {
    if (later !== null) clearTimeout(later);
    later = null;
    saidMs = performance.now();
    list.update();
    details.update();
    table.update();
    blockText.textContent = blockWords(blockView, model.latest);
    stateText.textContent = stateWords(model.latest);
    stateText.hidden = stateText.textContent === '';
    whole.hidden = !isZoomed(blockView, model.latest) && whole.getAttribute('aria-pressed') === 'false';
    empty.hidden = timeline.isBusy;
  };
  const sayInTime = () => {
    const waitMs = saidMs + WORDS_MS - performance.now();
    if (waitMs <= 0) say();
    else later ??= setTimeout(say, waitMs);
  };
  feed.on('formation', (event) => {
    model.take(event, performance.now());
    timeline.modelChanged();
    blockView.show(event);
    sayInTime();
    // The last bar leaves the picture without an event.
    if (event.requests.length === 0) setTimeout(sayInTime, timeline.windowMs + PLAYOUT_MS);
  });
  feed.on('reset', () => {
    model.reset();
    selection.choose(null);
    blockView.show(null);
    timeline.changed();
    say();
  });
  say();
};

function head(burst: HTMLElement): HTMLElement {
  return el('div', { class: 'live-head' }, [
    el('div', {}, [
      el('h2', { class: 'panel-title' }, ['The formation']),
      el('p', { class: 'panel-lead' }, [
        'Each row is a request. It joins the batch when it comes and leaves when it is done; none waits for the longest.',
      ]),
    ]),
    burst,
  ]);
}

function windowSwitch(choose: (seconds: number) => void): HTMLElement {
  const buttons = WINDOWS_S.map((seconds) =>
    el(
      'button',
      { class: 'chip', type: 'button', 'aria-pressed': String(seconds === USUAL_WINDOW_S) },
      [`${seconds} s`],
      {
        click: ({ currentTarget }) => {
          for (const button of buttons) button.setAttribute('aria-pressed', String(button === currentTarget));
          choose(seconds);
        },
      },
    ),
  );
  return el('div', { class: 'chips', role: 'group', 'aria-label': 'Seconds shown' }, buttons);
}

function wholeSwitch(choose: (isWhole: boolean) => void): HTMLButtonElement {
  const button = el(
    'button',
    { class: 'chip', type: 'button', 'aria-pressed': 'false', hidden: true },
    ['Whole pool'],
    {
      click: () => {
        const isWhole = button.getAttribute('aria-pressed') === 'false';
        button.setAttribute('aria-pressed', String(isWhole));
        choose(isWhole);
      },
    },
  );
  return button;
}

function isZoomed({ shown, cells }: BlockView, formation: FormationEvent | TimelineModel['latest']): boolean {
  return cells !== null && formation !== null && shown < formation.blocks.count;
}

/** Slots for states and snapshots of a model that has states, and what became of prompts; '' of any other. */
function stateWords(formation: Pick<FormationEvent, 'stateSlots'> | null): string {
  const states = formation?.stateSlots;
  if (states === undefined) return '';
  const { slots, usedSlots, snapshots, keptSnapshots, hits, lost } = states;
  return [
    `States: ${count(usedSlots)} of ${plural(slots, 'slot')} used`,
    `${count(keptSnapshots)} of ${plural(snapshots, 'snapshot')} kept`,
    `${plural(hits, 'prompt')} began with one`,
    `${count(lost)} computed cached blocks again for want of one`,
  ].join(' · ');
}

function blockWords(view: BlockView, formation: FormationEvent | TimelineModel['latest']): string {
  const { cells, layout } = view;
  if (cells === null || formation === null) return '';
  const [free, used, cached, shared] = cells.totals;
  const { count: blocks, tokensPerBlock } = formation.blocks;
  const owners = formation.requests.filter((row) => row[9]! > 0).length;
  const parts = [
    `${plural(blocks, 'block')} of ${plural(tokensPerBlock, 'token')}`,
    `${count(used)} used${owners > 0 ? ` by ${plural(owners, 'request')}` : ''}`,
    `${count(shared)} shared`,
    `${count(cached)} cached`,
    `${count(free)} free`,
  ];
  if (isZoomed(view, formation)) parts.push(`the first ${count(view.shown)} shown`);
  if (layout.blocksPerCell > 1) parts.push(`a cell is ${count(layout.blocksPerCell)} blocks`);
  return parts.join(' · ');
}

const ENTRIES: readonly [mark: string, text: string][] = [
  ['queued', 'queued'],
  ['context', 'context chunk'],
  ['generating', 'generating'],
  ['paused', 'paused'],
  ['resumed', 'resuming'],
  ['done', 'done'],
  ['cancelled', 'cancelled'],
  ['failed', 'failed'],
];
