import { svelte } from '@sveltejs/vite-plugin-svelte';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { defineConfig, type Plugin } from 'vite';

const out = 'dist/app';

/** Puts each text beside itself as brotli and gzip, so that the server compresses nothing. */
function compressed(): Plugin {
  return {
    name: 'compressed',
    apply: 'build',
    closeBundle() {
      for (const name of readdirSync(out, { recursive: true, encoding: 'utf8' })) {
        if (!/\.(js|css|svg)$/.test(name)) continue;
        const text = readFileSync(join(out, name));
        writeFileSync(join(out, `${name}.br`), brotliCompressSync(text));
        writeFileSync(join(out, `${name}.gz`), gzipSync(text, { level: 9 }));
      }
    },
  };
}

export default defineConfig(({ command }) => ({
  base: command === 'build' ? './' : '/app/', // the server knows the path of its public URL
  plugins: [svelte(), compressed()],
  build: {
    outDir: out,
    emptyOutDir: true,
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // What six files import is one chunk: many small ones compress badly.
    rolldownOptions: { output: { codeSplitting: { groups: [{ name: 'shared', minShareCount: 6 }] } } },
    manifest: true, // for the test of how much is loaded
  },
  // `npm run dev` shows each change at once, beside `make run`.
  server: { proxy: { '^/(api|auth|problems|health)': process.env.FLAGLEDGER_URL ?? 'http://127.0.0.1:8080' } },
}));
