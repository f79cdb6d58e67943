import { type PlatformAct, platformRoleMay, type Role, roleMay, type TenantAct } from '../permissions';
import { usePlace } from '../router/place';
import { usePlatformRole } from './platform';
import { useTenants } from './tenants';

/** Returns the person's role in a tenant: null for none, undefined while unknown. Call it when a component starts. */
export function useRole(tenant: () => string | undefined): () => Role | null | undefined {
  const tenants = useTenants();
  return () => tenants.data && (tenants.data.find(({ id }) => id === tenant())?.role ?? null);
}

/** Returns whether the person may do something in the tenant: undefined while unknown. Call it when a component starts. */
export function useMay(act: TenantAct): () => boolean | undefined {
  const place = usePlace();
  const role = useRole(() => place().tenant);
  return () => {
    const known = role();
    return known === undefined ? undefined : roleMay(known, act);
  };
}

/** Returns whether the person may do something on the platform. Call it when a component starts. */
export function useMayOnPlatform(act: PlatformAct): () => boolean {
  const role = usePlatformRole();
  return () => platformRoleMay(role(), act);
}
