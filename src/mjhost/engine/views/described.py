"""What the engine's functions need beyond their C signatures, as a table to read.

Owns: the list of functions that may be called from inside an extension, and why the others may not.
Invariants: a function that is not described here is not available: the engine answers a wrong
argument by ending the process, so nothing is passed on unchecked.

A line names a function and what holds for its parameters:

* ``res[n*m.nv]``: elements the array must have. Parameters, members of a struct parameter
  (``m.nv``), constants of the engine, sums and products; ``a|b`` is the larger one.
* ``body@m.nbody``: from 0, below that; ``body@-1..m.nbody``: from -1, below that; ``n@0..``: from
  0. What a length is made of is not negative without saying so.
* ``objid@objtype``: an object of that type, which has a place in space.
* ``rownnz=None``: nothing else.

A parameter without an entry is any number, or an array whose length the C signature tells.
"""

from __future__ import annotations

from typing import Final

DESCRIBED: Final = """
mj_defaultSolRefImp     solref[2] solimp[5]
mj_sizeModel
mj_isPyramidal
mj_isSparse
mj_isDual
mj_getTotalmass
mj_version
mj_versionString
mj_name2id
mj_id2name
mj_actuatorInputName    id@m.nactuator input@0..
mj_getPluginConfig      plugin_id@m.nplugin
mj_maxContact           g1@m.ngeom g2@m.ngeom has_margin@-1..2
mj_stateSize            sig@0..
mj_getState             state[0] sig@0..

mj_subtreeVel
mj_rne                  result[m.nv]
mj_rnePostConstraint
mj_energyPos
mj_energyVel

mj_solveM               x[n*m.nv] y[n*m.nv] n@0..
mj_solveM2              x[n*m.nv] y[n*m.nv] sqrtInvD[m.nv] n@0..
mj_fullM                dst[m.nv*m.nv]
mj_mulM                 res[m.nv] vec[m.nv]
mj_mulM2                res[m.nv] vec[m.nv]
mj_addM                 dst[m.nv*m.nv] rownnz=None rowadr=None colind=None
mj_mulJacVec            res[d.nefc] vec[m.nv]
mj_mulJacTVec           res[m.nv] vec[d.nefc]
mj_jac                  jacp[3*m.nv] jacr[3*m.nv] body@m.nbody
mj_jacBody              jacp[3*m.nv] jacr[3*m.nv] body@m.nbody
mj_jacBodyCom           jacp[3*m.nv] jacr[3*m.nv] body@m.nbody
mj_jacSubtreeCom        jacp[3*m.nv] body@m.nbody
mj_jacGeom              jacp[3*m.nv] jacr[3*m.nv] geom@m.ngeom
mj_jacSite              jacp[3*m.nv] jacr[3*m.nv] site@m.nsite
mj_jacPointAxis         jacPoint[3*m.nv] jacAxis[3*m.nv] body@m.nbody
mj_jacDot               jacp[3*m.nv] jacr[3*m.nv] body@m.nbody
mj_angmomMat            mat[3*m.nv] body@m.nbody
mj_applyFT              body@m.nbody qfrc_target[m.nv]
mj_objectVelocity       objid@objtype
mj_objectAcceleration   objid@objtype
mj_geomDistance         geom1@m.ngeom geom2@m.ngeom
mj_insideSite           siteid@m.nsite
mj_contactForce         id@d.ncon
mj_differentiatePos     qvel[m.nv] qpos1[m.nq] qpos2[m.nq]
mj_integratePos         qpos[m.nq] qvel[m.nv]
mj_normalizeQuat        qpos[m.nq]
mj_local2Global         body@d.model.nbody sameframe@mjSAMEFRAME_INERTIAROT+1

mj_ray                  geomgroup[mjNGROUP] bodyexclude@-1..m.nbody
mj_multiRay             vec[3*nray] geomgroup[mjNGROUP] bodyexclude@-1..m.nbody geomid[nray]
                        dist[nray] normal[3*nray]
mj_rayHfield            geomid@m.ngeom
mj_rayMesh              geomid@m.ngeom
mj_rayFlex              flex_layer@0.. flexid@m.nflex
mju_rayGeom
mju_raySkin             face[3*nface] vert[3*nvert]

mju_zero3
mju_copy3
mju_scl3
mju_add3
mju_sub3
mju_addTo3
mju_subFrom3
mju_addToScl3
mju_addScl3
mju_normalize3
mju_norm3
mju_dot3
mju_dist3
mju_mulMatVec3
mju_mulMatTVec3
mju_cross
mju_zero4
mju_unit4
mju_copy4
mju_normalize4
mju_zero                res[n]
mju_fill                res[n]
mju_copy                res[n] vec[n]
mju_sum                 vec[n]
mju_L1                  vec[n]
mju_scl                 res[n] vec[n]
mju_add                 res[n] vec1[n] vec2[n]
mju_sub                 res[n] vec1[n] vec2[n]
mju_addTo               res[n] vec[n]
mju_subFrom             res[n] vec[n]
mju_addToScl            res[n] vec[n]
mju_addScl              res[n] vec1[n] vec2[n]
mju_normalize           res[n] n@1..
mju_norm                res[n]
mju_dot                 vec1[n] vec2[n]
mju_mulMatVec           res[nr] mat[nr*nc] vec[nc]
mju_mulMatTVec          res[nc] mat[nr*nc] vec[nr]
mju_mulVecMatVec        vec1[n] mat[n*n] vec2[n]
mju_transpose           res[nr*nc] mat[nr*nc]
mju_symmetrize          res[n*n] mat[n*n]
mju_eye                 mat[n*n]
mju_mulMatMat           res[r1*c2] mat1[r1*c1] mat2[c1*c2]
mju_mulMatMatT          res[r1*r2] mat1[r1*c1] mat2[r2*c1]
mju_mulMatTMat          res[c1*c2] mat1[r1*c1] mat2[r1*c2]
mju_sqrMatTD            res[nc*nc] mat[nr*nc] diag[nr]
mju_transformSpatial
mju_dense2sparse        res[nnz] mat[nr*nc] rownnz[nr] rowadr[nr] colind[nnz]
mju_sparse2dense        res[nr*nc] mat[0] rownnz[nr] rowadr[nr] colind[0] nc@0..
mju_sym2dense           res[n*n] mat[0] rownnz[n] rowadr[n] colind[0]

mju_rotVecQuat
mju_negQuat
mju_mulQuat
mju_mulQuatAxis
mju_axisAngle2Quat
mju_quat2Vel
mju_subQuat
mju_quat2Mat
mju_mat2Quat
mju_derivQuat
mju_quatIntegrate
mju_quatZ2Vec
mju_mat2Rot
mju_euler2Quat
mju_mulPose
mju_negPose
mju_trnVecPose

mju_cholFactor          mat[n*n]
mju_cholSolve           res[n] mat[n*n] vec[n]
mju_cholUpdate          mat[n*n] x[n]
mju_cholFactorBand      mat[ntotal*nband-ndense*nband+ndense*ntotal]
                        nband@1..ntotal+1 ndense@0..ntotal+1
mju_cholSolveBand       mat[ntotal*nband-ndense*nband+ndense*ntotal] res[ntotal] vec[ntotal]
                        nband@1..ntotal+1 ndense@0..ntotal+1
mju_band2Dense          mat[ntotal*nband-ndense*nband+ndense*ntotal] res[ntotal*ntotal]
                        nband@1..ntotal+1 ndense@0..ntotal+1
mju_dense2Band          res[ntotal*nband-ndense*nband+ndense*ntotal] mat[ntotal*ntotal]
                        nband@1..ntotal+1 ndense@0..ntotal+1
mju_bandMulMatVec       mat[ntotal*nband-ndense*nband+ndense*ntotal] res[ntotal*nvec]
                        vec[ntotal*nvec] nband@1..ntotal+1 ndense@0..ntotal+1
mju_bandDiag            i@ntotal nband@1..ntotal+1 ndense@0..ntotal+1
mju_eig3
mju_boxQP               res[n] R[n*n+7*n] index[n] H[n*n] g[n] lower[n] upper[n] n@1..

mju_muscleGain
mju_muscleBias
mju_muscleDynamics
mju_encodePyramid       pyramid[2*dim-2] force[dim] mu[dim-1] dim@2..7
mju_decodePyramid       pyramid[1|2*dim-2] force[dim] mu[dim-1] dim@1..7
mju_springDamper
mju_min
mju_max
mju_clip
mju_sign
mju_round
mju_isBad
mju_isZero              vec[n]
mju_standardNormal      num2[1]
mju_f2n                 res[n] vec[n]
mju_n2f                 res[n] vec[n]
mju_d2n                 res[n] vec[n]
mju_n2d                 res[n] vec[n]
mju_insertionSort       list[n]
mju_insertionSortInt    list[n]
mju_Halton              index@0.. base@2..
mju_sigmoid
mju_type2Str
mju_str2Type
mju_writeNumBytes
mju_warningText
"""

# NULL is admitted there, which introspect does not say.
NULLABLE: Final = frozenset({("mju_sqrMatTD", "diag"), ("mju_standardNormal", "num2")})

# Why functions are not described, with what their names begin with: the first that fits.
REFUSED: Final = {
    "it is a stage of the very step that calls the extension": """
        mj_step mj_forward mj_inverse mj_fwd mj_inv mj_Euler mj_RungeKutta mj_implicit mj_sensor
        mj_check mj_kinematics mj_comPos mj_comVel mj_camlight mj_flex mj_tendon mj_transmission
        mj_crb mj_makeM mj_factorM mj_passive mj_collision mj_makeConstraint mj_island
        mj_projectConstraint mj_referenceConstraint mj_constraintUpdate mj_compareFwdInv
        """,
    "no view has the structs it works on": """
        mj_defaultVFS mj_mountVFS mj_unmountVFS mj_addFileVFS mj_addBufferVFS mj_deleteFileVFS
        mj_deleteVFS mj_contains mj_getCache mj_setCache mj_clearCache mj_default mju_openResource
        mju_closeResource mju_readResource mju_writeResource mju_getResource mju_isModified
        mju_decode mju_getXML mju_strncpy
        """,
    "it replaces what the engine is working on": """
        mj_reset mj_copyData mj_copyModel mj_copyState mj_setState mj_extractState mj_setKeyframe
        mj_setConst mj_setLengthRange mj_setTotalmass mj_init mj_addContact mju_threadpool
        """,
    "it makes, frees or rebuilds what the engine is working on": """
        mj_make mj_delete mj_load mj_embed mj_compile mj_recompile mj_parse mj_encode mj_copySpec
        mj_copyBack mj_freeLast
        """,
    "it writes files or to the standard output": """
        mj_save mj_print mju_print mju_writeLog
        """,
    "the engine's messages belong to the process, raise an exception or use warnings.warn": """
        mj_warning mju_error mju_warning mju_message mju_info mju_clearHandlers mju_setLog
        mju_getLog
        """,
    "the engine's memory is no Python object, use an array of NumPy": """
        mj_markStack mj_freeStack mj_stackAlloc mju_malloc mju_free mju_boxQPmalloc
        """,
    "its result is a pointer into the history, read d.history": """
        mj_read
        """,
}
