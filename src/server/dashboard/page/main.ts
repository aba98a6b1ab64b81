import type { ModelsEvent } from '../../feeds/models-event.js';
import { byId } from './dom.js';
import { Feed } from './feed.js';
import { Header } from './header.js';
import { KeyDialog } from './key-dialog.js';
import { ModelChoice } from './model-choice.js';
import { type ChatModel, loadModels, ModelsProblem } from './models.js';
import { PANELS } from './panels.js';
import { RepositoryFeed } from './repository/repository-feed.js';
import { Session } from './session.js';

const session = new Session(document.baseURI, tabStorage());
const feed = new Feed(session);
const repository = new RepositoryFeed(session);
const choice = new ModelChoice();
const keyDialog = new KeyDialog(session);
const header = new Header(
  byId('header'),
  { feed, repository, session },
  {
    askKey: () => keyDialog.open(),
    choose: (model) => {
      choice.want(model);
      feed.watch(model);
      header.showModels(served, choice.among(served, model));
    },
  },
);
const use = (model: string) => {
  choice.want(model);
  void start();
};

/** Milliseconds between attempts to learn which models are served. */
const RETRY_MS = 2000;
/** Sections about models that generate text. */
const OF_TEXTS = ['chat', 'formation', 'charts', 'schemes'];

let isLoading = false;
/** Something has changed since the list that is coming was asked for. */
let isStale = false;
/** Models that generate text, and their adapters. */
let served: readonly ChatModel[] = [];
/** Models that generate text, as the page lists them and as the latest event has them. */
let listed = '';
let told = '';
/** Number of changes of LoRA adapters in the latest event; null: there was none. */
let adapterChanges: number | null = null;
session.on('unlocked', () => {
  if (feed.model === null) void start();
});
feed.on('gone', () => {
  feed.hold({ kind: 'connecting' });
  void start();
});
repository.on('models', (event) => {
  if (isLoading || event.models === 0) return;
  const names = generatorsOf(event);
  const changes = event.rows.reduce((sum, { work }) => sum + (work?.adapters?.changes ?? 0), 0);
  const isOutdated = names !== told && names !== listed;
  const hasOtherAdapters = adapterChanges !== null && changes !== adapterChanges;
  told = names;
  adapterChanges = changes;
  if (isOutdated || hasOtherAdapters) void start();
});
for (const [id, mount] of Object.entries(PANELS)) mount(byId(id), { feed, repository, session, choice, use });
void start();

/** Asks which models are served until that is known; without a key it may not be told. */
async function start(): Promise<void> {
  isStale = isLoading;
  if (isLoading) return;
  isLoading = true;
  try {
    const models = await loadModels(session);
    listed = namesOf(models.flatMap(({ id, parent }) => (parent === null ? [id] : [])));
    served = models;
    const { model, gone } = choice.among(models, feed.model);
    header.showModels(models, { model, gone });
    showTexts(models.length > 0);
    if (models.length === 0) feed.hold({ kind: 'idle', reason: 'No model here generates text' });
    else if (model === null) feed.hold({ kind: 'gone', model: gone! });
    else if (model.id !== feed.model) feed.watch(model.id);
    repository.open();
  } catch (error) {
    if (!(error instanceof ModelsProblem)) throw error;
    // The feed of the model that is watched finds out by itself.
    if (feed.model !== null) return;
    // Unlocking calls this function again.
    if (error.isLocked) return feed.hold({ kind: 'locked' });
    feed.hold({ kind: 'waiting', reason: error.message, retryAtMs: performance.now() + RETRY_MS });
    setTimeout(() => void start(), RETRY_MS);
  } finally {
    isLoading = false;
    if (isStale) void start();
  }
}

/** Shows the panels of texts, or leaves the page to the models of tensors. */
function showTexts(isShown: boolean): void {
  for (const id of OF_TEXTS) byId(id).hidden = !isShown;
  const skip = byId('skip');
  skip.setAttribute('href', isShown ? '#prompt' : '#models');
  // Where no model is loaded, those that could be are all there is.
  skip.onclick = () => {
    if (!isShown && byId('models').getClientRects().length === 0) skip.setAttribute('href', '#catalogue');
  };
  skip.textContent = isShown ? 'Skip to the chat' : 'Skip to the models';
}

function generatorsOf({ rows }: ModelsEvent): string {
  return namesOf(rows.filter(({ work }) => work?.kind === 'generator').map(({ name }) => name));
}

function namesOf(names: readonly string[]): string {
  return JSON.stringify([...new Set(names)].sort());
}

/** The tab's storage; null where the browser allows none. */
function tabStorage(): Storage | null {
  try {
    return sessionStorage;
  } catch {
    return null;
  }
}
