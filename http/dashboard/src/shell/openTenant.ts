import { useQueryClient } from '@tanstack/svelte-query';
import type { Place } from '../api/client';
import { firstTenant, useMemberships } from '../queries/memberships';
import { defaultEnvironment, environmentNames, environmentsQuery, useEnvironments } from '../queries/tenants';
import { last } from '../router/lastPlace';
import { pathIn } from '../router/place';
import { router } from '../router/router.svelte';

// Returns the place of a tenant: its last used environment, or else an existing one.
function openingPlace(tenant: string, environments: string[] | undefined): Place {
  const used = last.environmentIn(tenant) ?? 'production';
  const there = !environments || environments.includes(used);
  return { tenant, environment: there ? used : (defaultEnvironment(environments) ?? used) };
}

/**
 * Where to begin, once it is known: the tenant that was used last, here or elsewhere, or else the person's first. It is none that another person added them to
 * and that they have not opened. Call it at a component's start.
 */
export function useFirstPlace(): () => Place | undefined {
  const memberships = useMemberships();
  const tenant = () => {
    if (!memberships.data) return undefined;
    const here = memberships.data.tenants.find((t) => t.tenant_id === last.place?.tenant && t.added_by === null);
    return here?.tenant_id ?? firstTenant(memberships.data);
  };
  const environments = useEnvironments(tenant);
  return () => {
    const id = tenant();
    return id === undefined || environments.isPending ? undefined : openingPlace(id, environments.data);
  };
}

const readTimeout = 2000; // milliseconds to read a tenant's environments
let openings = 0;

/** Opens the flags of another tenant, unless the person has gone elsewhere meanwhile. Call it when a component starts. */
export function useOpenTenant(): (tenant: string) => Promise<void> {
  const client = useQueryClient();
  return async (tenant) => {
    const [mine, path] = [++openings, router.path];
    const environments = await Promise.race([
      client.fetchQuery({ ...environmentsQuery(tenant), retry: false }).then(environmentNames, () => undefined),
      new Promise<undefined>((resolve) => setTimeout(resolve, readTimeout)),
    ]);
    if (mine === openings && router.path === path) router.go(pathIn(openingPlace(tenant, environments), 'flags'));
  };
}
