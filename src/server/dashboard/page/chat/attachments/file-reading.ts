import type { ChatModel } from '../../models.js';
import type { Page } from '../../panels.js';
import { type Attachment, isPicture } from './attachment.js';
import { AttachmentProblem, quoted } from './attachment-problem.js';
import { readFile } from './read-file.js';

/** Reads files for the model that the page is of: pictures where it sees, texts with their size in its tokens. */
export class FileReading {
  readonly #page: Page;

  constructor(page: Page) {
    this.#page = page;
  }

  /** True where the model takes pictures. */
  get sees(): boolean {
    return this.#model?.input_modalities?.includes('image') ?? false;
  }

  get #model(): ChatModel | null {
    const { choice, feed } = this.#page;
    return choice.find(feed.model);
  }

  /** The sentence that refuses pictures; null: the model takes them. */
  whyNoPictures(): string | null {
    if (this.sees) return null;
    const { model } = this.#page.feed;
    return model === null ? 'no model is chosen.' : `the model ${quoted(model)} does not see pictures.`;
  }

  /** Reads a file that is to be attached. @throws AttachmentProblem where it is not taken */
  readonly read = async (
    file: File,
    onProgress: (share: number) => void,
    signal: AbortSignal,
  ): Promise<Attachment> => {
    const attachment = await readFile(file, { whyNoPictures: this.whyNoPictures(), onProgress, signal });
    if (isPicture(attachment)) return attachment;
    const tokens = await this.#tokensOf(attachment.content ?? '', signal);
    const room = this.#model?.max_model_len ?? Number.POSITIVE_INFINITY;
    if (tokens !== null && tokens >= room) {
      const counts = `${tokens.toLocaleString('en')} tokens, and the model's context has ${room.toLocaleString('en')}`;
      throw new AttachmentProblem(`${quoted(file.name)} has ${counts}.`);
    }
    return { ...attachment, tokens };
  };

  /** Tokens of a text, as the server counts them; null where it does not say. */
  async #tokensOf(prompt: string, signal: AbortSignal): Promise<number | null> {
    const { model } = this.#page.feed;
    const body = { model, prompt, add_special_tokens: false };
    const response = await this.#page.session.post('tokenize', body, { signal }).catch(() => null);
    if (!response?.ok) return null;
    return ((await response.json()) as { count: number }).count;
  }
}
