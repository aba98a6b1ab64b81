import { mountCatalogue } from './catalogue/catalogue-panel.js';
import { mountCharts } from './charts/charts-panel.js';
import { ChatPanel } from './chat/chat-panel.js';
import type { Feed } from './feed.js';
import { mountFormation } from './formation/formation-panel.js';
import type { ModelChoice } from './model-choice.js';
import { mountModels } from './repository/models-panel.js';
import type { RepositoryFeed } from './repository/repository-feed.js';
import { mountSchemes } from './schemes/schemes-panel.js';
import type { Session } from './session.js';

/** Services of the page that a panel uses. */
export interface Page {
  /** Feed of the model chosen in the header: `feed.model`, and its events. */
  feed: Feed;
  /** Feed of all models of the server. */
  repository: RepositoryFeed;
  /**
   * Sends requests to the server, with the API key if there is one: `session.fetch('v1/models')`, `session.post(path,
   * body)`.
   */
  session: Session;
  /** Told when the reader asks a model. */
  choice: ModelChoice;
  /** Makes the page that of a model that has just been loaded. */
  use(model: string): void;
}

/**
 * Fills a section of index.html, which is hidden until its panel shows it (`root.hidden = false`). Colours and
 * distances come from style/tokens.css; a canvas gets them from `tokenColour`, and is drawn again on `onThemeChange`. A
 * panel's styles are a file in style/, which page.css names.
 */
export type MountPanel = (root: HTMLElement, page: Page) => void;

/** Functions that mount panels, by the id of their section. */
export const PANELS: Readonly<Record<string, MountPanel>> = {
  chat: (root, page) => void new ChatPanel(root, page),
  catalogue: mountCatalogue,
  formation: mountFormation,
  charts: mountCharts,
  models: mountModels,
  schemes: mountSchemes,
};
