import { byId } from './dom.js';
import { Feed } from './feed.js';
import { Header } from './header.js';
import { KeyDialog } from './key-dialog.js';
import { loadModels, ModelsProblem } from './models.js';
import { PANELS } from './panels.js';
import { Session } from './session.js';

const session = new Session(document.baseURI, tabStorage());
const feed = new Feed(session);
const keyDialog = new KeyDialog(session);
const header = new Header(byId('header'), feed, {
  askKey: () => keyDialog.open(),
  choose: (model) => feed.watch(model),
});
for (const [id, mount] of Object.entries(PANELS)) mount(byId(id), { feed, session });

/** Milliseconds between attempts to learn which models are served. */
const RETRY_MS = 2000;

let isLoading = false;
session.on('unlocked', () => void start());
feed.on('gone', () => {
  feed.hold({ kind: 'connecting' });
  void start();
});
void start();

/** Asks which models are served until that is known; without a key it may not be told. */
async function start(): Promise<void> {
  if (isLoading || feed.model !== null) return;
  isLoading = true;
  try {
    const models = await loadModels(session);
    header.showModels(models);
    if (models[0] !== undefined) feed.watch(models[0].id);
    else feed.hold({ kind: 'idle', reason: 'No model here generates text' });
  } catch (error) {
    if (!(error instanceof ModelsProblem)) throw error;
    // Unlocking calls this function again.
    if (error.isLocked) return feed.hold({ kind: 'locked' });
    feed.hold({ kind: 'waiting', reason: error.message, retryAtMs: performance.now() + RETRY_MS });
    setTimeout(() => void start(), RETRY_MS);
  } finally {
    isLoading = false;
  }
}

/** The tab's storage; null where the browser allows none. */
function tabStorage(): Storage | null {
  try {
    return sessionStorage;
  } catch {
    return null;
  }
}
