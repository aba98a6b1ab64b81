import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { buildEngine } from '../../../engine/building/builder.js';
import { chooseTemplates } from '../../../models/tokenizer/named-templates.js';
import { readTokenizerFiles } from '../../../models/tokenizer/tokenizer-files.js';
import { temporaryFolder } from '../../support/fresh-folders.js';
import { writeTinyGguf, writeTinyModel } from '../../support/tiny-checkpoint.js';

const root = temporaryFolder('skein-named-templates');

/** Templates of the engine that is built of a model. */
async function builtTemplates(model: string, name: string) {
  const outputDirectory = join(root, `${name}-engine`);
  await buildEngine({ model, outputDirectory, precision: 'f32' });
  return readTokenizerFiles(outputDirectory);
}

const text = (value: string) => ({ type: 'string', value }) as const;

describe('the templates of an engine', () => {
  it("are those of a GGUF, with the names of llama.cpp's converter", async () => {
    const file = join(root, 'several.gguf');
    writeTinyGguf(file, {
      metadata: {
        'tokenizer.chat_templates': { type: 'array', of: 'string', value: ['tool_use', 'lost'] },
        'tokenizer.chat_template.tool_use': text('tools'),
        'tokenizer.chat_template': text('plain'),
      },
    });
    const files = await builtTemplates(file, 'gguf');
    expect(files).toMatchObject({ chatTemplate: 'plain', namedTemplates: { tool_use: 'tools' } });
    expect(Object.keys(files.namedTemplates!)).toEqual(['tool_use']);
    expect(chooseTemplates(files)).toEqual({ plain: 'plain', withTools: 'tools' });
  });

  it('are those of a folder: files, which replace those of tokenizer_config.json', async () => {
    const model = writeTinyModel(join(root, 'folder'));
    const configured = [
      { name: 'default', template: 'configured' },
      { name: 'rag', template: 'of documents' },
    ];
    writeFileSync(join(model, 'tokenizer_config.json'), JSON.stringify({ chat_template: configured }));
    const before = await builtTemplates(model, 'configured');
    expect(before).toMatchObject({ chatTemplate: 'configured', namedTemplates: { rag: 'of documents' } });
    expect(chooseTemplates(before, 'rag')).toEqual({ plain: 'of documents', withTools: 'of documents' });
    mkdirSync(join(model, 'additional_chat_templates'));
    writeFileSync(join(model, 'additional_chat_templates/tool_use.jinja'), 'tools');
    writeFileSync(join(model, 'chat_template.jinja'), 'file');
    const files = await builtTemplates(model, 'files');
    expect(chooseTemplates(files)).toEqual({ plain: 'file', withTools: 'tools' });
    expect(Object.keys(files.namedTemplates!)).toEqual(['tool_use']);
  });
});
